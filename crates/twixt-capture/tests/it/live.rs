//! Live capture on virtual interfaces, in network namespaces that go with the test.

mod frames;
mod interfaces;
mod namespace;
mod offloads;
mod sender;
mod spreading;
mod traffic;
