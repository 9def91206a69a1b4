//! Values as programs use them: graphs of every shape are written, read, cut, damaged and freed.

mod deep;
mod golden;
mod graphs;
mod hostile;
mod types;
