//go:build !race

package model

// mostStates lets every world of the suite be walked to its end.
const mostStates = maxStates
