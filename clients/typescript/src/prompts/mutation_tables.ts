// Words and patterns of the five mutations of this client. A pattern is [source, flags].

export const FALLBACK = {
 "condition": [
  "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:if|when|unless|should|must)(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))",
  "ui"
 ],
 "has": [
  "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))try to(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))|(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))if (?:you|this|that|it|any)(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))[^.]{0,60}(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:can't|cannot|can not|not possible|unable|difficult|isn't)",
  "ui"
 ],
 "after": {
  "fix": [
   "fix-with-fallback",
   "If it cannot be fixed outright, suggest solutions or workarounds."
  ],
  "create": [
   "create-with-alternatives",
   "If part of it is not possible, suggest alternatives or explain the challenge."
  ],
  "analyse": [
   "analyze-with-partial",
   "If something cannot be determined, say what can be and what is missing."
  ]
 },
 "otherwise": [
  "general-with-explanation",
  "If that cannot be done, explain why and suggest the next steps."
 ]
} as const;

export const REDUCE = {
 "again": [
  "(?<![^])(?:in other words|that is to say|to put it simply|basically|essentially|in simple terms|to clarify)(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))",
  "ui"
 ],
 "fillers": [
  "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:as you (?:may )?know|it is (?:important|worth) (?:to note|noting) that|obviously|clearly|of course|needless to say|to be honest|just|really|very|actually|simply|kind of|sort of|in order)(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_])),?[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]*",
  "ui"
 ],
 "requests": [
  "(?<![^])(?:(?:hi|hello|hey)(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))[^.!?]{0,40}[.!,][\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]*)?(?:i would like you to|i'd like you to|i want you to|i need you to|(?:could|can|would) you(?: please)?|please|kindly)[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]+",
  "ui"
 ],
 "longExample": [
  "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:for example|for instance|e\\.g\\.|such as)[:,]?[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]+[^.!?\\n]{60,}(?=[.!?\\n]|(?=\\n?(?![^])))",
  "ui"
 ],
 "asks": [
  "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:write|create|make|build|implement|develop|code|generate|compose|draft|design|fix|repair|solve|debug|correct|analyze|analyse|examine|review|check|investigate|evaluate|compare|classify|explain|describe|detail|outline|summarize|summarise|list|add|include|insert|append|remove|delete|drop|eliminate|update|modify|change|alter|refactor|rewrite|translate|convert|optimize|optimise|improve|enhance)(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))",
  "ui"
 ],
 "binds": [
  "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:must|should|only|exactly|at least|at most|less than|more than|without|do not|don't|avoid|never|always|include|format|answer|words?|sentences?|paragraphs?)(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))|[\\p{Nd}]|[\"“{]|\\?",
  "ui"
 ],
 "lines": [
  "[^.!?\\n]*(?:[.!?]+(?=[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]|(?=\\n?(?![^])))|\\n|(?=\\n?(?![^])))[ \\t]*\\n?",
  "u"
 ],
 "shortest": 10,
 "worth": 0.05
} as const;

export const EXPAND = {
 "terms": [
  [
   "API",
   [
    "(?<![\\p{L}\\p{N}_])API(?![\\p{L}\\p{N}_])",
    "ui"
   ],
   "an interface through which programs call each other"
  ],
  [
   "REST",
   [
    "(?<![\\p{L}\\p{N}_])REST(?![\\p{L}\\p{N}_])",
    "ui"
   ],
   "resources addressed by URLs and changed with HTTP's verbs"
  ],
  [
   "SQL",
   [
    "(?<![\\p{L}\\p{N}_])SQL(?![\\p{L}\\p{N}_])",
    "ui"
   ],
   "the language of relational databases"
  ],
  [
   "NoSQL",
   [
    "(?<![\\p{L}\\p{N}_])NoSQL(?![\\p{L}\\p{N}_])",
    "ui"
   ],
   "stores of documents, keys or graphs instead of tables"
  ],
  [
   "async/await",
   [
    "(?<![\\p{L}\\p{N}_])async/await(?![\\p{L}\\p{N}_])",
    "ui"
   ],
   "code that waits without blocking others"
  ],
  [
   "JWT",
   [
    "(?<![\\p{L}\\p{N}_])JWT(?![\\p{L}\\p{N}_])",
    "ui"
   ],
   "a signed token that carries its claims"
  ],
  [
   "OAuth",
   [
    "(?<![\\p{L}\\p{N}_])OAuth(?![\\p{L}\\p{N}_])",
    "ui"
   ],
   "a way to grant access without handing out a password"
  ],
  [
   "CRUD",
   [
    "(?<![\\p{L}\\p{N}_])CRUD(?![\\p{L}\\p{N}_])",
    "ui"
   ],
   "create, read, update and delete"
  ],
  [
   "MVC",
   [
    "(?<![\\p{L}\\p{N}_])MVC(?![\\p{L}\\p{N}_])",
    "ui"
   ],
   "model, view and controller kept apart"
  ],
  [
   "ORM",
   [
    "(?<![\\p{L}\\p{N}_])ORM(?![\\p{L}\\p{N}_])",
    "ui"
   ],
   "objects mapped to rows of a database"
  ],
  [
   "CI/CD",
   [
    "(?<![\\p{L}\\p{N}_])CI/CD(?![\\p{L}\\p{N}_])",
    "ui"
   ],
   "every change is built, tested and delivered by machine"
  ],
  [
   "Docker",
   [
    "(?<![\\p{L}\\p{N}_])Docker(?![\\p{L}\\p{N}_])",
    "ui"
   ],
   "programs packed with what they need into containers"
  ],
  [
   "Kubernetes",
   [
    "(?<![\\p{L}\\p{N}_])Kubernetes(?![\\p{L}\\p{N}_])",
    "ui"
   ],
   "a system that runs containers on many machines"
  ],
  [
   "GraphQL",
   [
    "(?<![\\p{L}\\p{N}_])GraphQL(?![\\p{L}\\p{N}_])",
    "ui"
   ],
   "a query language in which the client says which fields it wants"
  ],
  [
   "WebSocket",
   [
    "(?<![\\p{L}\\p{N}_])WebSocket(?![\\p{L}\\p{N}_])",
    "ui"
   ],
   "a connection on which both sides may speak at any time"
  ],
  [
   "TypeScript",
   [
    "(?<![\\p{L}\\p{N}_])TypeScript(?![\\p{L}\\p{N}_])",
    "ui"
   ],
   "JavaScript with types that are checked before it runs"
  ],
  [
   "Redux",
   [
    "(?<![\\p{L}\\p{N}_])Redux(?![\\p{L}\\p{N}_])",
    "ui"
   ],
   "one store of state that changes by named actions"
  ],
  [
   "MongoDB",
   [
    "(?<![\\p{L}\\p{N}_])MongoDB(?![\\p{L}\\p{N}_])",
    "ui"
   ],
   "a database of JSON-like documents"
  ],
  [
   "PostgreSQL",
   [
    "(?<![\\p{L}\\p{N}_])PostgreSQL(?![\\p{L}\\p{N}_])",
    "ui"
   ],
   "a relational database with transactions"
  ],
  [
   "Redis",
   [
    "(?<![\\p{L}\\p{N}_])Redis(?![\\p{L}\\p{N}_])",
    "ui"
   ],
   "a store of keys and values in memory"
  ]
 ],
 "mostTerms": 3,
 "steps": [
  [
   [
    "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))optimize",
    "ui"
   ],
   [
    "measure first",
    "find the slowest part",
    "change one thing at a time",
    "measure again"
   ]
  ],
  [
   [
    "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))refactor",
    "ui"
   ],
   [
    "name what should stay the same",
    "cover it with tests",
    "change the structure in small steps"
   ]
  ],
  [
   [
    "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))implement",
    "ui"
   ],
   [
    "fix the inputs and outputs",
    "write the simplest version",
    "handle the edge cases",
    "test it"
   ]
  ],
  [
   [
    "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))debug",
    "ui"
   ],
   [
    "reproduce the fault",
    "narrow it down",
    "mend the cause, not the symptom",
    "keep a test of it"
   ]
  ],
  [
   [
    "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))design",
    "ui"
   ],
   [
    "list the requirements",
    "compare two or three options",
    "choose one and say why"
   ]
  ]
 ],
 "examples": [
  [
   [
    "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:function|code|program|script|class)(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))",
    "ui"
   ],
   "input [3, 1, 2] gives [1, 2, 3]; an empty list gives []"
  ],
  [
   [
    "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:write|content|article|email|letter|post|story)(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))",
    "ui"
   ],
   "begin with a concrete scene or fact, not with a definition"
  ],
  [
   [
    "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:analy[sz]|review|compare|evaluat)",
    "ui"
   ],
   "“X is better than Y in A, because of B; it costs C”"
  ]
 ],
 "criteria": [
  [
   [
    "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:function|code|program|script|class|api)(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))",
    "ui"
   ],
   [
    "it runs as given",
    "edge cases are handled"
   ]
  ],
  [
   [
    "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:write|article|email|essay|post|blog)(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))",
    "ui"
   ],
   [
    "the structure is easy to follow",
    "the tone fits the reader"
   ]
  ],
  [
   [
    "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:data|analy[sz]|statistic)",
    "ui"
   ],
   [
    "the method is named",
    "each conclusion has its number"
   ]
  ]
 ],
 "sections": [
  "Technical Context:",
  "Detailed Steps:",
  "Example:",
  "Success Criteria:"
 ],
 "hasExample": [
  "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:for example|for instance|e\\.g\\.|example:)",
  "ui"
 ]
} as const;

export const CONSTRAIN = {
 "library": {
  "CODE_GENERATION": [
   "use type annotations throughout",
   "handle errors and name them in the message",
   "add unit tests that cover the edge cases",
   "keep each function to one task (SOLID)",
   "use async/await where something waits",
   "comment what is not obvious from the code",
   "reject input of the wrong type"
  ],
  "CODE_REVIEW": [
   "name security vulnerabilities first",
   "say what each problem costs in performance",
   "judge readability and naming",
   "give the corrected lines",
   "rank the problems by severity",
   "say what is missing from the tests"
  ],
  "CONTENT_WRITING": [
   "use headings and short paragraphs",
   "keep a consistent, professional tone",
   "write for readers who are new to the subject",
   "begin with the main point",
   "keep sentences below 25 words",
   "end with a summary",
   "avoid jargon"
  ],
  "MARKETING_COPY": [
   "end with one clear call to action",
   "name benefits, not features",
   "speak to one kind of customer",
   "keep it below 100 words",
   "give a reason to act now",
   "support the claim with a number or a quote",
   "use an active voice"
  ],
  "DATA_ANALYSIS": [
   "name the method and its assumptions",
   "give the three most important insights",
   "say which chart would show it",
   "report the uncertainty of each number",
   "say how missing values were treated",
   "end with a recommendation"
  ],
  "GENERAL_QA": [
   "answer in the first sentence",
   "say so where you are not certain",
   "keep it below 150 words",
   "name a source where you can",
   "give one practical example"
  ],
  "CREATIVE_WRITING": [
   "appeal to at least three senses",
   "give the narrator a voice of their own",
   "avoid worn-out phrases",
   "let one image return at the end",
   "show what people feel by what they do",
   "surprise the reader once"
  ]
 },
 "added": 2,
 "most": 4,
 "title": "Constraints:",
 "below": [
  "Constraints:\\n(?:- [^\\n]*\\n?)+(?![^])",
  "u"
 ]
} as const;

export const DECOMPOSE = {
 "next": [
  "(?:\\.|;)[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]+(?:then|finally|next|also|after that|afterwards)[,\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]+|;[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]+",
  "ui"
 ],
 "with": [
  "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]+with[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]+",
  "ui"
 ],
 "and": [
  ",?[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]+and[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]+(?:then[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]+)?",
  "ui"
 ],
 "section": [
  "(?<=\\n|(?<![^]))(?:Technical Context|Detailed Steps|Example|Success Criteria|Constraints):",
  "u"
 ],
 "shortest": 15,
 "most": 8,
 "done": "Work through these steps in order:"
} as const;
