package admin

// ReleaseWithin is a release that has not ended yet.
var ReleaseWithin = releaseWithin
