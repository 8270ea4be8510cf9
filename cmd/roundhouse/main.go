// Command roundhouse is the front door, the supervisor and every operator
// command: see `roundhouse help`.
package main

import (
	"os"
	_ "time/tzdata" // for images that have no zoneinfo of their own

	"github.com/spf13/cobra"
)

func main() {
	c := &console{in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.LookupEnv}
	os.Exit(c.run(root(c), os.Args[1:]))
}

// root is the table of contents.
func root(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "roundhouse",
		Short: "A load balancer for LLM engines that restarts them without dropping a request",
		Long: `A load balancer for LLM engines that restarts them without dropping a request.

Commands that ask or tell a running roundhouse find its admin API at
127.0.0.1:8001, at --admin ADDR, or where the configuration file of -c FILE
says. They take a pool, pool/name, or a worker's name where it is unique.

Exit codes: 0 done, 1 failed, 2 usage or configuration, 3 nothing to reach.`,
	}
	cmd.AddGroup(&cobra.Group{ID: groupRun, Title: "Run:"},
		&cobra.Group{ID: groupConfig, Title: "Configure:"},
		&cobra.Group{ID: groupLook, Title: "Look:"},
		&cobra.Group{ID: groupOperate, Title: "Operate:"})
	cmd.AddCommand(commands(c)...)
	return cmd
}

// The headings of `roundhouse help`.
const (
	groupRun     = "run"
	groupConfig  = "config"
	groupLook    = "look"
	groupOperate = "operate"
)

// commands are all there are. One that does not work is not here.
func commands(c *console) []*cobra.Command {
	all := []*cobra.Command{
		upCommand(c), balanceCommand(c), pickerCommand(c), superviseCommand(c),
		validateCommand(c), fmtCommand(c), keyCommand(c), importCommand(c), pluginsCommand(c),
		psCommand(c), topCommand(c), consoleCommand(c), logsCommand(c), eventsCommand(c), explainCommand(c), doctorCommand(c), diagnoseCommand(c), profileCommand(c), benchCommand(c), simulateCommand(c), tuneCommand(c), versionCommand(c),
		rotateCommand(c), canaryCommand(c), scheduleCommand(c), usageCommand(c), scaleCommand(c), reloadCommand(c), upgradeCommand(c),
	}
	all = append(all, workerCommands(c)...)
	return append(all, dockerGuardCommand(c), healthCommand(), manCommand())
}
