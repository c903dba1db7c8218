//! Convoke, lowest floor.
