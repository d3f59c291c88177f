//! Pages in a browser: Chromium, which `scripts/need chromium` installs.

#![allow(missing_docs, unreachable_pub)]

mod chromium;
mod explorer;
mod report;
mod viewer;
