import type { IncomingHttpHeaders } from 'node:http'
import { type Failed, fail, isRecord, readText, type StoredFacts } from '../core/index.ts'
import { type Because, type CallReason, getFhirWords } from '../fhir/index.ts'

/** MCP 2026-07-28: without a session, each request states its version. */
export const MODERN = '2026-07-28'

/** Versions that begin with `initialize`. */
export const INITIALIZED = ['2025-11-25', '2025-06-18', '2025-03-26'] as const

export const VERSIONS: readonly string[] = [MODERN, ...INITIALIZED]

const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion'
const CAPABILITIES_KEY = 'io.modelcontextprotocol/clientCapabilities'

/** A JSON-RPC request, or a notification if it has no id. */
export interface Message {
  readonly id: string | number | undefined
  readonly method: string
  readonly params: Readonly<Record<string, unknown>>
  readonly isModern: boolean
}

/** Why a message gets an error (JSON-RPC 2.0, 5.1; MCP 2026-07-28, Streamable HTTP). */
export interface ProtocolFault extends Failed {
  readonly reason: keyof typeof OF_CALLS | keyof typeof OTHERS
  readonly id?: string | number | undefined
  readonly text: string
  readonly data?: object | undefined
  /** For the audit trail. */
  readonly facts?: StoredFacts | undefined
  readonly tool?: string | undefined
}

const OF_CALLS = {
  'origin-refused': -32000,
  'message-too-large': -32600,
  'message-of-other-type': -32600,
  'message-not-json': -32700,
  'message-malformed': -32600,
  'message-headers-differ': -32020,
  'mcp-version-unsupported': -32022,
  'mcp-method-unknown': -32601,
  'mcp-parameters-wrong': -32602,
  'tool-unknown': -32602,
  'calls-too-many': -32000,
} as const satisfies Partial<Record<CallReason, number>>

/** Those with a status are recorded elsewhere: when the token or the FHIR request was refused. */
const OTHERS = {
  forbidden: { status: 403, code: -32000 },
  unauthorized: { status: 401, code: -32000 },
  'not-allowed': { status: 405, code: -32000 },
  unreadable: { status: 400, code: -32602 },
  broken: { status: 500, code: -32603 },
} as const

export function failProtocol(
  reason: keyof typeof OF_CALLS | keyof typeof OTHERS,
  text: string,
  more: Pick<ProtocolFault, 'id' | 'data' | 'facts' | 'tool'> = {},
): ProtocolFault {
  return fail({ reason, text, ...more })
}

/** Why the call is refused, for the audit trail. Undefined if that is recorded elsewhere. */
export function findRefusal({ reason, facts = {} }: ProtocolFault): Because<CallReason> | undefined {
  return isOfCalls(reason) ? fail({ reason, facts }) : undefined
}

function isOfCalls(reason: ProtocolFault['reason']): reason is keyof typeof OF_CALLS {
  return Object.hasOwn(OF_CALLS, reason)
}

/** The response to a fault. In the versions with `initialize`, the faults of a method are those of JSON-RPC, with status 200. */
export function describeFault(
  { reason, id, text, data }: ProtocolFault,
  isModern = true,
): { readonly status: number; readonly body: object } {
  const { status, code } = isOfCalls(reason)
    ? { status: getFhirWords(reason).status, code: OF_CALLS[reason] }
    : OTHERS[reason]
  const isOfMethod = code === -32601 || code === -32602
  return {
    status: isOfMethod && !isModern ? 200 : status,
    body: { jsonrpc: '2.0', id: id ?? null, error: { code, message: text, ...(data && { data }) } },
  }
}

export function readMessage(body: unknown, headers: IncomingHttpHeaders): Message | ProtocolFault {
  if (!isRecord(body) || body.jsonrpc !== '2.0' || typeof body.method !== 'string')
    return failProtocol('message-malformed', 'Expected one JSON-RPC request or notification')
  const { id, method, params = {} } = body
  if (id !== undefined && typeof id !== 'string' && typeof id !== 'number')
    return failProtocol('message-malformed', 'Expected an id that is a string or a number')
  if (!isRecord(params)) return failProtocol('mcp-parameters-wrong', 'Expected an object in params', { id })
  const meta = isRecord(params._meta) ? params._meta : {}
  const stated = readText(headers['mcp-protocol-version'])
  const version = readText(meta[VERSION_KEY])
  if (version === undefined && stated !== MODERN) return readInitialized({ id, method, params }, stated)
  return checkModern({ id, method, params, isModern: true }, headers, meta)
}

function readInitialized(
  message: Omit<Message, 'isModern'>,
  stated: string | undefined,
): Message | ProtocolFault {
  if (stated === undefined || VERSIONS.includes(stated)) return { ...message, isModern: false }
  return failVersion(message.id, stated)
}

function failVersion(id: Message['id'], requested: string | undefined): ProtocolFault {
  const data = { supported: VERSIONS, ...(requested !== undefined && { requested }) }
  return failProtocol('mcp-version-unsupported', `Supported versions: ${VERSIONS.join(', ')}`, { id, data })
}

/** The headers repeat the body, so that proxies can route by them. They must say the same. */
function checkModern(
  message: Message,
  headers: IncomingHttpHeaders,
  meta: Readonly<Record<string, unknown>>,
): Message | ProtocolFault {
  const { id, method, params } = message
  const version = readText(meta[VERSION_KEY])
  const mismatch = (header: string) =>
    failProtocol('message-headers-differ', `The header ${header} is missing, or does not match the message`, {
      id,
    })
  if (id !== undefined && version === undefined)
    return failProtocol('mcp-parameters-wrong', `Expected ${VERSION_KEY} in _meta`, { id })
  if (version !== undefined && headers['mcp-protocol-version'] !== version)
    return mismatch('MCP-Protocol-Version')
  if (version !== undefined && version !== MODERN) return failVersion(id, version)
  if (headers['mcp-method'] !== method) return mismatch('Mcp-Method')
  const named = NAMED[method]
  if (named !== undefined && readHeader(headers['mcp-name']) !== params[named]) return mismatch('Mcp-Name')
  if (id !== undefined && !isRecord(meta[CAPABILITIES_KEY]))
    return failProtocol('mcp-parameters-wrong', `Expected ${CAPABILITIES_KEY} in _meta`, { id })
  return message
}

/** The parameter that `Mcp-Name` repeats. */
const NAMED: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
}

/** Names that are not plain ASCII are sent in Base64. */
function readHeader(value: string | string[] | undefined): string | undefined {
  const text = readText(value)
  const encoded = text === undefined ? undefined : /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/.exec(text)?.[1]
  return encoded === undefined ? text : Buffer.from(encoded, 'base64').toString()
}
