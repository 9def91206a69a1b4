//! One constructor per kind of diagnostic.

mod caching;
mod constants;
mod files;
mod interfaces;
mod lexical;
mod names;
mod parallel;
mod syntax;
mod timing;
mod types;
mod values;
