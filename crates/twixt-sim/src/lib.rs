//! twixt-sim
