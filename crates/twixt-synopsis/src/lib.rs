//! twixt-synopsis
