// Package usage counts what keys use of models by the day, keeps it in a folder that
// several doors share, and holds keys to their budgets.
//
// A folder has a file a month. Doors append what they have counted once a second, each
// line a sum, and read what others appended: so a door knows the folder's sums a second
// late, whoever of them dies. A file that has grown is written anew, as sums. Doors of
// other folders tell their sums (control.FolderUse), which the folder keeps too.
package usage
