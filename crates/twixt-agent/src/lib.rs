//! The live agent: joins sources of frames to meters, and sends what is sealed.
