// Package top shows the state of a house in a terminal: what the console shows, for whoever
// has a shell. What is drawn is pure; one file speaks to the terminal.
package top
