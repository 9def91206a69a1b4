//! IronORB: see ARCHITECTURE.md.
