//! The public futures of semaphore, mutex and read-write lock. They differ only in what they make of the
//! permits.

/// Defines a future over [`Acquire`](super::permits::Acquire), with the fields from which its result is made.
macro_rules! acquiring {
    (
        $(#[$attribute:meta])*
        pub struct $Name:ident<'a $(, $T:ident)?> { $($field:ident: $Field:ty),* } => $Output:ty
        |$($bound:ident),*| $make:expr
    ) => {
        pin_project_lite::pin_project! {
            $(#[$attribute])*
            #[must_use = "futures do nothing until they are awaited"]
            pub struct $Name<'a $(, $T)?> where $($T: ?Sized)? {
                #[pin]
                acquire: $crate::permits::Acquire<'a>,
                $($field: $Field,)*
            }
        }

        impl<'a $(, $T: ?Sized)?> core::future::Future for $Name<'a $(, $T)?> {
            type Output = $Output;

            #[inline]
            fn poll(
                self: core::pin::Pin<&mut Self>,
                cx: &mut core::task::Context<'_>,
            ) -> core::task::Poll<$Output> {
                let this = self.project();
                this.acquire.poll(cx).map(|()| {
                    $(let $bound = *this.$bound;)*
                    $make
                })
            }
        }

        impl<$($T: ?Sized)?> core::fmt::Debug for $Name<'_ $(, $T)?> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.debug_tuple(stringify!($Name)).field(&self.acquire).finish()
            }
        }
    };
}
pub(super) use acquiring;
