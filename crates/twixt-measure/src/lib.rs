//! twixt-measure
