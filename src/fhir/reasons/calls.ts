const CORRECT_CALL = 'The response says what is wrong. Correct the call.'
const CHECK_CLIENT = 'Use a client of MCP in a version that the response names.'

/** Messages to the endpoint of assistants that are refused before they become a FHIR request. */
export const CALLS = {
  'origin-refused': {
    status: 403,
    code: 'forbidden',
    sentence: 'Pages of this origin may not send messages to the endpoint of assistants',
    remedy: 'Call the endpoint from a program, or from a page of the origin of the auth server.',
  },
  'message-too-large': {
    status: 413,
    code: 'too-long',
    sentence: 'Cannot read message: it is larger than {limit} bytes',
    remedy: 'Send less at once.',
  },
  'message-of-other-type': {
    status: 415,
    code: 'not-supported',
    sentence: 'Cannot read message: expected application/json',
    remedy: 'Send “Content-Type: application/json”.',
  },
  'message-not-json': {
    status: 400,
    code: 'structure',
    sentence: 'Cannot read message: it is not JSON',
    remedy: CHECK_CLIENT,
  },
  'message-malformed': {
    status: 400,
    code: 'structure',
    sentence: 'Cannot read message: it is not one JSON-RPC request or notification',
    remedy: CHECK_CLIENT,
  },
  'message-headers-differ': {
    status: 400,
    code: 'invalid',
    sentence: 'Cannot accept message: its headers do not match it',
    cause:
      'MCP-Protocol-Version, Mcp-Method or Mcp-Name is missing, or says something else than the message.',
    remedy: CHECK_CLIENT,
  },
  'mcp-version-unsupported': {
    status: 400,
    code: 'not-supported',
    sentence: 'Cannot accept message: this version of MCP is not supported',
    remedy: CHECK_CLIENT,
  },
  'mcp-method-unknown': {
    status: 404,
    code: 'not-found',
    sentence: 'Cannot find this method of MCP',
    remedy: 'Call the tools that tools/list names.',
  },
  'mcp-parameters-wrong': {
    status: 400,
    code: 'invalid',
    sentence: 'Cannot accept message: its parameters are wrong',
    remedy: CORRECT_CALL,
  },
  'tool-unknown': {
    status: 400,
    code: 'not-found',
    sentence: 'Cannot call this tool: it does not exist, or the token cannot use it',
    cause: 'The tool does not exist, or no scope of the token can use it.',
    remedy: 'Call the tools that tools/list names, or request scopes for more.',
  },
  'tool-arguments-wrong': {
    status: 400,
    code: 'invalid',
    sentence: 'Cannot call the tool: its arguments do not match its schema',
    remedy: CORRECT_CALL,
  },
  'tool-misused': {
    status: 400,
    code: 'invalid',
    sentence: 'Cannot call the tool in this way',
    remedy: CORRECT_CALL,
  },
  'proposals-too-many': {
    status: 429,
    code: 'throttled',
    sentence: 'Cannot keep the proposal: {most} are open, which is the most',
    remedy: 'Sign or reject some of the open proposals first.',
  },
  'calls-too-many': {
    status: 429,
    code: 'throttled',
    sentence: 'Too many calls with this access in a minute',
    remedy: 'Wait as long as “Retry-After” says, or raise the setting smart.agents.calls-per-minute.',
  },
} as const

export type CallReason = keyof typeof CALLS
