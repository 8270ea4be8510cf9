package extproc

import "slices"

// The names that gateways and pickers agree on.
const (
	// Destination names the chosen endpoints, in a request's head and in the dynamic
	// metadata of lbNamespace: ip:port, several with commas in the order of retries.
	Destination = "x-gateway-destination-endpoint"
	// subset is, in the filter metadata of subsetNamespace, the endpoints to choose from.
	subset          = "x-gateway-destination-endpoint-subset"
	subsetNamespace = "envoy.lb.subset_hint"
	// served is, in the filter metadata of lbNamespace, the endpoint that answers.
	served      = "x-gateway-destination-endpoint-served"
	lbNamespace = "envoy.lb"
	// Dropped says in a refusal why a request was dropped.
	Dropped = "x-llm-d-request-dropped-reason"
)

// The reasons of Dropped.
const (
	Saturated    = "rejected-saturated"
	NoEndpoints  = "rejected-no-endpoints"
	Expired      = "rejected-ttl-expired"
	Cancelled    = "rejected-context-cancelled"
	ShuttingDown = "rejected-shutting-down"
	Evicted      = "evicted"
)

// Each field by which a gateway or a client tells a picker something has a present and
// a former name; the present one counts where both are given.
var (
	objectiveFields = [...]string{"x-llm-d-inference-objective", "x-gateway-inference-objective"}
	fairnessFields  = [...]string{"x-llm-d-inference-fairness-id", "x-gateway-inference-fairness-id"}
	rewriteFields   = [...]string{"x-llm-d-model-name-rewrite", "x-gateway-model-name-rewrite"}
)

// controlFields are those that no worker is to see.
var controlFields = []string{
	"x-llm-d-inference-objective", "x-gateway-inference-objective",
	"x-llm-d-inference-fairness-id", "x-gateway-inference-fairness-id",
	"x-llm-d-model-name-rewrite", "x-gateway-model-name-rewrite",
	"x-llm-d-slo-ttft-ms", "x-llm-d-slo-tpot-ms", "x-slo-ttft-ms", "x-slo-tpot-ms",
	subset, served,
}

// Control returns the fields that no worker is to see.
func Control() []string { return slices.Clone(controlFields) }
