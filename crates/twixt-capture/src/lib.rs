//! twixt-capture
