//! Values as a program sees them: graphs of every shape written, read, cut, damaged and freed.

mod deep;
mod golden;
mod graphs;
mod hostile;
mod types;
