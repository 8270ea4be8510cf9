package server

import (
	"encoding/json"

	"roundhouse/worker"
)

// toolUse is what a chat allows in the way of tool calls.
type toolUse struct{}

// tools reads tools and tool_choice.
func (s *Server) tools(f *chatRequest) (toolUse, *apiError) {
	var list []json.RawMessage
	if f.Tools != nil {
		if json.Unmarshal(f.Tools, &list) != nil {
			return toolUse{}, badShape("list_type", "tools", "Input should be a valid list")
		}
		if len(list) == 0 {
			return toolUse{}, badValue("tools", "tools must not be an empty array. Either provide at least one tool or omit the field entirely.")
		}
	}
	choice := "auto"
	if list == nil {
		choice = "none"
	}
	if f.ToolChoice != nil && json.Unmarshal(f.ToolChoice, &choice) != nil {
		choice = "named"
	}
	switch {
	case choice != "none" && list == nil:
		return toolUse{}, badValue("tool_choice", "When using `tool_choice`, `tools` must be set.")
	case choice == "none":
		return toolUse{}, nil
	case choice == "auto":
		return toolUse{}, badValue("tool_choice", "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set")
	}
	return toolUse{}, notImplemented("`tool_choice` other than none is not supported by this engine.")
}

// guide sets up what reads and restricts each choice.
func (c *chat) guide(use toolUse, prompt []int32) *apiError {
	p, err := c.s.guided(&c.f.samplingFields, c.reqs[0].Params)
	if err != nil {
		return err
	}
	c.reqs[0].Params = p
	for range c.choices() {
		c.readers = append(c.readers, &reader{})
	}
	return nil
}

// guided compiles response_format and structured_outputs.
func (s *Server) guided(f *samplingFields, p worker.Params) (worker.Params, *apiError) {
	var format struct {
		Type string `json:"type"`
	}
	if f.ResponseFormat != nil && json.Unmarshal(f.ResponseFormat, &format) != nil {
		return p, badShape("dict_type", "response_format", "Input should be a valid dictionary")
	}
	if f.StructuredOutputs != nil || format.Type != "" && format.Type != "text" {
		return p, notImplemented("structured outputs are not supported by this engine.")
	}
	return p, nil
}

// chatUsage is the account of a chat.
func (c *chat) chatUsage() *usage { return c.usage() }
