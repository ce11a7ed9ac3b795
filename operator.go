package main

import "github.com/spf13/cobra"

// operatorCommands speak to the console's API.
func operatorCommands() []*cobra.Command { return nil }
