// Generated from src/surefoot/decide/prompts by scripts/tables.py; a test fails if it is stale.
// A pattern is [source, flags].

export const MUTATIONS = [
 "try-catch-style",
 "context-reduction",
 "expansion",
 "constraint-addition",
 "task-decomposition"
] as const;

export const CATEGORIES = [
 "CODE_GENERATION",
 "CODE_REVIEW",
 "CONTENT_WRITING",
 "MARKETING_COPY",
 "DATA_ANALYSIS",
 "GENERAL_QA",
 "CREATIVE_WRITING"
] as const;

export const METRICS = {
 "CODE_GENERATION": [
  "correctness",
  "types",
  "tests"
 ],
 "CODE_REVIEW": [
  "security",
  "performance",
  "readability"
 ],
 "CONTENT_WRITING": [
  "clarity",
  "structure",
  "tone"
 ],
 "MARKETING_COPY": [
  "cta",
  "benefits",
  "conversion"
 ],
 "DATA_ANALYSIS": [
  "methodology",
  "insights",
  "visualization"
 ],
 "GENERAL_QA": [
  "helpfulness",
  "factuality",
  "brevity"
 ],
 "CREATIVE_WRITING": [
  "originality",
  "voice",
  "imagery"
 ]
} as const;

export const SIGNS = {
 "CODE_GENERATION": [
  [
   "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:write|create|implement|build|develop|code)(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))[^]{0,60}(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:function|class|program|script|api|app|code|query)(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))",
   "ui"
  ],
  [
   "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:python|javascript|typescript|java|c\\+\\+|sql|rust|golang|html|css|react|regex|bash)(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))",
   "ui"
  ],
  [
   "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:algorithm|endpoint|database|compiler|unit tests?|data structure|recursi[\\p{L}\\p{N}_]+)(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))",
   "ui"
  ],
  [
   "دالة|برمج|كود|خوارزمية",
   "ui"
  ]
 ],
 "CODE_REVIEW": [
  [
   "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:review|debug|fix|refactor|audit|optimi[sz]e)(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))[^]{0,40}(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:code|function|bug|program|script|query|class)(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))",
   "ui"
  ],
  [
   "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:code review|vulnerabilit[\\p{L}\\p{N}_]+|code smells?|stack trace|pull request|bug)(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))",
   "ui"
  ],
  [
   "مراجعة الكود|إصلاح|تصحيح",
   "ui"
  ]
 ],
 "CONTENT_WRITING": [
  [
   "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:write|draft|compose|create|rewrite|edit)(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))[^]{0,60}(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:article|blog|essay|post|report|email|letter|summary|resume|cover letter|paragraph|outline|speech|itinerary)(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))",
   "ui"
  ],
  [
   "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:summari[sz]e|proofread|paraphrase|rephrase|grammar|tone)(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))",
   "ui"
  ],
  [
   "مقال|تدوينة|تقرير|رسالة",
   "ui"
  ]
 ],
 "MARKETING_COPY": [
  [
   "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:advert[\\p{L}\\p{N}_]*|ad copy|slogan|tagline|landing page|marketing|campaign|newsletter|promot[\\p{L}\\p{N}_]+|sales page)(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))",
   "ui"
  ],
  [
   "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:brand|customers?|product description|call to action|instagram|facebook|tweet|pitch)(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))",
   "ui"
  ],
  [
   "إعلان|تسويق|شعار|حملة",
   "ui"
  ]
 ],
 "DATA_ANALYSIS": [
  [
   "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:analy[sz]e|analysis|compare|correlat[\\p{L}\\p{N}_]+|forecast|regression|statistic[\\p{L}\\p{N}_]*|trend)(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))[^]{0,60}(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:data|dataset|sales|survey|table|csv|spreadsheet|results|metrics)(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))",
   "ui"
  ],
  [
   "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:dataset|csv|spreadsheet|excel|chart|graph|average|median|histogram|pivot|sql query)(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))",
   "ui"
  ],
  [
   "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:classify|classification|entailment|sentiment|label the)(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))",
   "ui"
  ],
  [
   "تحليل|بيانات|إحصاء",
   "ui"
  ]
 ],
 "GENERAL_QA": [
  [
   "(?<=\\n|(?<![^]))(?:what|who|when|where|why|how|which|is|are|does|do|can)(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))",
   "ui"
  ],
  [
   "\\?[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]*(?=\\n|(?![^]))",
   "ui"
  ],
  [
   "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:explain|define|difference between|answer the (?:following )?question|tell me about)(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))",
   "ui"
  ],
  [
   "ما هو|ما هي|كيف|لماذا|اشرح",
   "ui"
  ]
 ],
 "CREATIVE_WRITING": [
  [
   "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:story|poem|haiku|limerick|song|lyrics|novel|fiction|screenplay|rap|riddle|joke|fairy tale|dialogue)(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))",
   "ui"
  ],
  [
   "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:imagine|pretend|creative|character|once upon|role-?play|metaphor)(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))",
   "ui"
  ],
  [
   "قصة|قصيدة|رواية|شعر",
   "ui"
  ]
 ]
} as const;

export const TRAITS = {
 "asks-a-question": [
  "\\?",
  "u"
 ],
 "has-constraints": [
  "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:must|should|at least|at most|no more than|only|exactly|do not|don't|without)(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))",
  "ui"
 ],
 "has-examples": [
  "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:e\\.g\\.|for example|for instance|such as|example:)",
  "ui"
 ],
 "has-code": [
  "```|(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))def |(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))function(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))|[{};][\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]*(?=\\n|(?![^]))",
  "u"
 ],
 "has-placeholders": [
  "\\{[a-z_ ]+\\}|\\[[A-Z_ ]+\\]",
  "u"
 ],
 "is-a-list": [
  "(?<=\\n|(?<![^]))[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]*(?:[-*•]|[\\p{Nd}]{1,2}[.)])[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]",
  "u"
 ]
} as const;

export const VERB_GROUPS = {
 "write": "create",
 "create": "create",
 "make": "create",
 "build": "create",
 "implement": "create",
 "develop": "create",
 "code": "create",
 "generate": "create",
 "compose": "create",
 "draft": "create",
 "design": "create",
 "fix": "fix",
 "repair": "fix",
 "solve": "fix",
 "debug": "fix",
 "correct": "fix",
 "analyze": "analyse",
 "analyse": "analyse",
 "examine": "analyse",
 "review": "analyse",
 "check": "analyse",
 "investigate": "analyse",
 "evaluate": "analyse",
 "compare": "analyse",
 "classify": "analyse",
 "explain": "explain",
 "describe": "explain",
 "detail": "explain",
 "outline": "explain",
 "summarize": "explain",
 "summarise": "explain",
 "list": "explain",
 "add": "add",
 "include": "add",
 "insert": "add",
 "append": "add",
 "remove": "remove",
 "delete": "remove",
 "drop": "remove",
 "eliminate": "remove",
 "update": "change",
 "modify": "change",
 "change": "change",
 "alter": "change",
 "refactor": "change",
 "rewrite": "change",
 "translate": "change",
 "convert": "change",
 "optimize": "improve",
 "optimise": "improve",
 "improve": "improve",
 "enhance": "improve"
} as const;

export const TEXT = {
 "token": [
  "[\\p{L}\\p{N}_]+|[^\\p{L}\\p{N}_\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]",
  "u"
 ],
 "end": [
  "(?<=[.!?؟])[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]+(?=[^\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000])",
  "u"
 ],
 "listLine": [
  "(?<![^])[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]*(?:[-*•]|[\\p{Nd}]{1,2}[.)])[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]+([^\\n]+)(?=\\n?(?![^]))",
  "u"
 ],
 "polite": [
  "(?<![^])(?:please|kindly|can you|could you|would you|i want you to|i need you to)[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000,]+",
  "ui"
 ],
 "word": [
  "[\\p{L}\\p{Nl}\\p{No}]+(?:['’-][\\p{L}\\p{Nl}\\p{No}]+)*",
  "u"
 ],
 "letters": [
  "[\\p{L}\\p{Nl}\\p{No}]+",
  "u"
 ],
 "space": [
  "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]+",
  "u"
 ]
} as const;

export const MEASURES = {
 "names": [
  "clear",
  "specific",
  "complete",
  "robust",
  "ordered",
  "brief",
  "correctness",
  "types",
  "tests",
  "security",
  "performance",
  "readability",
  "clarity",
  "structure",
  "tone",
  "cta",
  "benefits",
  "conversion",
  "methodology",
  "insights",
  "visualization",
  "helpfulness",
  "factuality",
  "brevity",
  "originality",
  "voice",
  "imagery"
 ],
 "general": [
  "clear",
  "specific",
  "complete",
  "robust",
  "ordered",
  "brief"
 ],
 "vague": [
  "better",
  "etc",
  "good",
  "just",
  "maybe",
  "nice",
  "probably",
  "really",
  "some",
  "somehow",
  "something",
  "stuff",
  "thing",
  "things",
  "very",
  "whatever"
 ],
 "evidence": {
  "correctness": [
   [
    "edge cases?|corner cases?|empty (?:list|input|string)",
    "ui"
   ],
   [
    "handle errors?|exceptions?|error handling|invalid",
    "ui"
   ],
   [
    "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))correct[\\p{L}\\p{N}_]*|it runs|valid[\\p{L}\\p{N}_]*",
    "ui"
   ],
   [
    "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))input(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))[^]*(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:output|gives|returns?)(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))",
    "ui"
   ]
  ],
  "types": [
   [
    "type annotations?|(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))typed?(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))|type hints?|type safety",
    "ui"
   ],
   [
    "typescript|schema|interface",
    "ui"
   ],
   [
    "wrong type|data types?",
    "ui"
   ]
  ],
  "tests": [
   [
    "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))unit tests?|(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))test cases?|(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))tests?(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))",
    "ui"
   ],
   [
    "coverage|assert",
    "ui"
   ],
   [
    "edge cases?",
    "ui"
   ]
  ],
  "security": [
   [
    "secur[\\p{L}\\p{N}_]+|vulnerabilit[\\p{L}\\p{N}_]+",
    "ui"
   ],
   [
    "injection|sanitiz[\\p{L}\\p{N}_]+|authenticat[\\p{L}\\p{N}_]+|permission",
    "ui"
   ],
   [
    "severity",
    "ui"
   ]
  ],
  "performance": [
   [
    "performance|efficien[\\p{L}\\p{N}_]+|fast[\\p{L}\\p{N}_]*|slow[\\p{L}\\p{N}_]*",
    "ui"
   ],
   [
    "complexity|memory|latency",
    "ui"
   ],
   [
    "costs? in|measure",
    "ui"
   ]
  ],
  "readability": [
   [
    "readab[\\p{L}\\p{N}_]+|naming|clean",
    "ui"
   ],
   [
    "comment|document[\\p{L}\\p{N}_]*",
    "ui"
   ],
   [
    "corrected lines|structure",
    "ui"
   ]
  ],
  "clarity": [
   [
    "clear[\\p{L}\\p{N}_]*|simple|plain|easy to follow",
    "ui"
   ],
   [
    "main point|summary",
    "ui"
   ],
   [
    "below [\\p{Nd}]+ words|short (?:sentences|paragraphs)|sentences below",
    "ui"
   ]
  ],
  "structure": [
   [
    "headings?|sections?|outline|structure[\\p{L}\\p{N}_]*",
    "ui"
   ],
   [
    "paragraphs?|introduction|conclusion|summary",
    "ui"
   ],
   [
    "bullet|numbered|list|steps",
    "ui"
   ]
  ],
  "tone": [
   [
    "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))tone(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))|formal|informal|friendly|professional",
    "ui"
   ],
   [
    "audience|readers?|beginners?|new to",
    "ui"
   ],
   [
    "style|voice|jargon",
    "ui"
   ]
  ],
  "cta": [
   [
    "call to action|sign up|subscribe|buy now|(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))act now(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))",
    "ui"
   ],
   [
    "reason to act|click|order|contact",
    "ui"
   ]
  ],
  "benefits": [
   [
    "benefits?|value|advantage",
    "ui"
   ],
   [
    "customers?|users?|audience|one kind of",
    "ui"
   ],
   [
    "problem|need|pain",
    "ui"
   ]
  ],
  "conversion": [
   [
    "convert|conversion|persuasive|convinc[\\p{L}\\p{N}_]+",
    "ui"
   ],
   [
    "number or a quote|testimonial|proof|evidence",
    "ui"
   ],
   [
    "headline|hook|attention|active voice",
    "ui"
   ]
  ],
  "methodology": [
   [
    "method[\\p{L}\\p{N}_]*|approach|assumptions?",
    "ui"
   ],
   [
    "statistic[\\p{L}\\p{N}_]*|regression|test|model|compare",
    "ui"
   ],
   [
    "missing values|sample|uncertaint[\\p{L}\\p{N}_]+|confidence",
    "ui"
   ]
  ],
  "insights": [
   [
    "insights?|findings?|conclusions?|trends?",
    "ui"
   ],
   [
    "recommend[\\p{L}\\p{N}_]*|next steps?|explain why|because",
    "ui"
   ],
   [
    "most important|key|top [\\p{L}\\p{N}_]+",
    "ui"
   ]
  ],
  "visualization": [
   [
    "charts?|graphs?|plot|visuali[sz][\\p{L}\\p{N}_]+",
    "ui"
   ],
   [
    "tables?|diagram|histogram",
    "ui"
   ],
   [
    "would show|axis|legend",
    "ui"
   ]
  ],
  "helpfulness": [
   [
    "example|for instance|step",
    "ui"
   ],
   [
    "practical|how to|explain|why",
    "ui"
   ],
   [
    "everything asked|answer in",
    "ui"
   ]
  ],
  "factuality": [
   [
    "sources?|cite|reference|evidence",
    "ui"
   ],
   [
    "not certain|uncertain[\\p{L}\\p{N}_]*|nothing is made up|facts?|accurate",
    "ui"
   ],
   [
    "date|year|number|[\\p{Nd}]{3,}",
    "ui"
   ]
  ],
  "brevity": [
   [
    "below [\\p{Nd}]+ words|at most|no more than|fewer than|less than",
    "ui"
   ],
   [
    "brief[\\p{L}\\p{N}_]*|short[\\p{L}\\p{N}_]*|concise[\\p{L}\\p{N}_]*|one sentence|in the first sentence",
    "ui"
   ],
   [
    "only|just the",
    "ui"
   ]
  ],
  "originality": [
   [
    "original[\\p{L}\\p{N}_]*|unique|unusual|surpris[\\p{L}\\p{N}_]+",
    "ui"
   ],
   [
    "worn-out|clich|avoid",
    "ui"
   ],
   [
    "twist|unexpected|imagine|weird|zany",
    "ui"
   ]
  ],
  "voice": [
   [
    "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))voice(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))|narrator|first person|point of view",
    "ui"
   ],
   [
    "tone|style|character|dialogue",
    "ui"
   ],
   [
    "feel[\\p{L}\\p{N}_]*|emotion[\\p{L}\\p{N}_]*|angry|happy|funny",
    "ui"
   ]
  ],
  "imagery": [
   [
    "image[\\p{L}\\p{N}_]*|senses?|vivid|scene",
    "ui"
   ],
   [
    "metaphor|simile|symbol",
    "ui"
   ],
   [
    "describ[\\p{L}\\p{N}_]+|concrete|colou?r|sound|smell",
    "ui"
   ]
  ]
 },
 "binding": [
  "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:must|should|only|exactly|at least|at most|fewer|less than|more than|no more|without|do not|don't|avoid|never|always)(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))",
  "ui"
 ],
 "detail": [
  "[\\p{Nd}]+|\"[^\"]{2,}\"|“[^”]{2,}”|'[^']{3,}'|(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))[A-Z][a-z]+ [A-Z][a-z]+|\\{[a-z_]+\\}",
  "u"
 ],
 "parts": [
  [
   "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:example|for instance|e\\.g\\.|such as)",
   "ui"
  ],
  [
   "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:success criteria|criteria|goal|purpose|so that)(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))",
   "ui"
  ],
  [
   "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:context|background|given|you are|acting as|as an? [\\p{L}\\p{N}_]+,)",
   "ui"
  ],
  [
   "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:format|json|table|bullet|list|paragraphs?|words|sentences|answer with|respond)(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))",
   "ui"
  ]
 ],
 "wayOut": [
  "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))if (?:[^.]{0,60}(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:cannot|can't|not possible|difficult[\\p{L}\\p{N}_]*|unsure|not certain|missing)|you run into)|workaround|alternatives?(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))",
  "ui"
 ],
 "steps": [
  "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))(?:first|then|next|finally|step [\\p{Nd}]|in order)(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))",
  "ui"
 ]
} as const;

export const SCORE = {
 "own": 0.5,
 "full": 0.8,
 "general": {
  "CODE_GENERATION": [
   0.1,
   0.2,
   0.25,
   0.2,
   0.1,
   0.15
  ],
  "CODE_REVIEW": [
   0.15,
   0.2,
   0.15,
   0.2,
   0.15,
   0.15
  ],
  "CONTENT_WRITING": [
   0.2,
   0.2,
   0.25,
   0.05,
   0.2,
   0.1
  ],
  "MARKETING_COPY": [
   0.2,
   0.25,
   0.1,
   0.05,
   0.05,
   0.35
  ],
  "DATA_ANALYSIS": [
   0.1,
   0.25,
   0.2,
   0.15,
   0.2,
   0.1
  ],
  "GENERAL_QA": [
   0.25,
   0.15,
   0.1,
   0.1,
   0.05,
   0.35
  ],
  "CREATIVE_WRITING": [
   0.2,
   0.25,
   0.2,
   0.0,
   0.05,
   0.3
  ]
 }
} as const;

export const TOKEN_COST = 0.002 as const;

