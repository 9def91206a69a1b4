//! One program of all tests that can share a process: it is linked once, and its tests run side by side.

mod bidirectional;
mod bridge;
mod cached;
mod circumstances;
mod code_sets;
mod command_line;
mod corpus;
mod ironorb;
mod jacorb_client;
mod jacorb_server;
mod jobs;
mod omniorb_client;
mod omniorb_server;
mod our_names;
mod peer_cache;
mod peer_names;
mod repositories;
mod tao;
