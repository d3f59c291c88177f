//! How host names are looked up where the C library is within the executable.
//!
//! Otherwise `/etc/nsswitch.conf` names the plugins to ask. These are shared libraries that need
//! the C library of their own system. An executable that contains a C library, made elsewhere, may
//! not fit them. So it uses the lookups that it contains: `/etc/hosts`, and then the servers in
//! `/etc/resolv.conf`.

/// Asks no plugins. Call this before any lookup.
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
