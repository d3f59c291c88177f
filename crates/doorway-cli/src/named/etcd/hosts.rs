//! How the names of hosts are looked up where the C library is within the executable.
//!
//! Where it is not, `/etc/nsswitch.conf` says which plugins to ask, and these are shared libraries
//! that need the C library of their own system. An executable that has brought its own may not fit
//! them, if it was made elsewhere. So it asks those that it has brought as well: `/etc/hosts`, and
//! then the servers in `/etc/resolv.conf`.

/// Asks no plugins. Call it before anything is looked up.
pub(super) fn resolve_within() {
    #[cfg(static_c_library)]
    {
        use std::ffi::{c_char, c_int};

        #[allow(unsafe_code)]
        // SAFETY: declared as in <nss.h>. It copies both texts, under a lock of its own.
        unsafe {
            unsafe extern "C" {
                fn __nss_configure_lookup(
                    database: *const c_char,
                    services: *const c_char,
                ) -> c_int;
            }
            __nss_configure_lookup(c"hosts".as_ptr(), c"files dns".as_ptr());
        }
    }
}
