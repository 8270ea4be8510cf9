package template

// expr is an expression.
type expr interface {
	eval(r *renderer, e *scope) value
}

type (
	constExpr struct{ v value }
	nameExpr  struct{ name string }
	listExpr  struct{ items []expr }
	tupleExpr struct{ items []expr }
	dictExpr  struct{ keys, vals []expr }

	// attrExpr is x.name.
	attrExpr struct {
		x    expr
		name string
	}
	// indexExpr is x[key].
	indexExpr struct{ x, key expr }
	// sliceExpr is x[from:to:step]; parts may be nil.
	sliceExpr struct{ x, from, to, step expr }

	callExpr struct {
		line int
		fn   expr
		args argExprs
	}
	filterExpr struct {
		line int
		x    expr
		name string
		run  filterFunc
		args argExprs
	}
	testExpr struct {
		line int
		x    expr
		run  testFunc
		args argExprs
		not  bool
	}
	// condExpr is a if test else b; b may be nil.
	condExpr struct{ test, a, b expr }
	andExpr  struct{ a, b expr }
	orExpr   struct{ a, b expr }
	notExpr  struct{ x expr }
	negExpr  struct {
		x    expr
		plus bool
	}
	binaryExpr struct {
		line int
		op   string
		a, b expr
	}
	// concatExpr is a ~ b ~ c.
	concatExpr struct{ items []expr }
	// compareExpr is a chain such as a < b <= c.
	compareExpr struct {
		line int
		x    expr
		ops  []string
		rest []expr
	}
)

// argExprs are the arguments of a call.
type argExprs struct {
	positional []expr
	names      []string
	named      []expr
	spread     expr // *args, or nil
	spreadDict expr // **kwargs, or nil
}

// node is a statement.
type node interface {
	run(r *renderer, e *scope)
}

type (
	dataNode  struct{ text string }
	printNode struct {
		line int
		x    expr
	}
	ifNode struct {
		line      int
		tests     []expr
		bodies    [][]node
		otherwise []node
	}
	forNode struct {
		line      int
		target    []string
		single    bool // one name, not a tuple of one
		in, cond  expr
		recursive bool
		body      []node
		otherwise []node
	}
	// setNode is {% set target = x %}.
	setNode struct {
		line    int
		targets []setTarget
		single  bool
		x       expr
	}
	// captureNode is {% set name %}body{% endset %}.
	captureNode struct {
		line    int
		target  setTarget
		filters *filterExpr // applied to the text; its innermost x is the capture
		hole    *holeExpr
		body    []node
	}
	macroNode struct {
		line int
		def  *macroDef
	}
	// callNode is {% call(args) f(x) %}body{% endcall %}.
	callNode struct {
		line   int
		caller *macroDef
		call   *callExpr
	}
	// filterNode is {% filter f %}body{% endfilter %}.
	filterNode struct {
		line int
		x    *filterExpr
		hole *holeExpr
		body []node
	}
	withNode struct {
		line  int
		names []string
		vals  []expr
		body  []node
	}
	// generationNode is {% generation %}body{% endgeneration %}.
	generationNode struct{ body []node }
	breakNode      struct{}
	continueNode   struct{}
)

// setTarget is a name, or a field of a namespace.
type setTarget struct{ name, field string }

// macroDef is a macro as it was written.
type macroDef struct {
	name     string
	params   []string
	defaults []expr // of the last parameters
	body     []node
	// What the body mentions decides what a call may pass besides.
	usesVarargs, usesKwargs bool
}

// holeExpr stands for the text of a block inside a chain of filters.
type holeExpr struct{}
