//! twixt-wire
