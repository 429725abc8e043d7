/** One process, so that one service serves all of them. */

import "./prompts.test.js";
import "./client.test.js";
import "./rl.test.js";
import "./examples.test.js";
