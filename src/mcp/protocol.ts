import type { IncomingHttpHeaders } from 'node:http'
import { type Failed, fail, isRecord, readText } from '../core/index.ts'

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
  readonly reason: keyof typeof FAULTS
  readonly id?: string | number | undefined
  readonly text: string
  readonly data?: object | undefined
}

const FAULTS = {
  'not-json': { status: 400, code: -32700 },
  'not-a-message': { status: 400, code: -32600 },
  'header-mismatch': { status: 400, code: -32020 },
  'unsupported-version': { status: 400, code: -32022 },
  'unknown-method': { status: 404, code: -32601 },
  'invalid-params': { status: 400, code: -32602 },
  forbidden: { status: 403, code: -32000 },
  unauthorized: { status: 401, code: -32000 },
  'too-many-calls': { status: 429, code: -32000 },
  'not-allowed': { status: 405, code: -32000 },
  broken: { status: 500, code: -32603 },
} as const

export function failProtocol(
  reason: keyof typeof FAULTS,
  text: string,
  more: Pick<ProtocolFault, 'id' | 'data'> = {},
): ProtocolFault {
  return fail({ reason, text, ...more })
}

/** The response to a fault. In the versions with `initialize`, the faults of a method are those of JSON-RPC, with status 200. */
export function describeFault(
  { reason, id, text, data }: ProtocolFault,
  isModern = true,
): { readonly status: number; readonly body: object } {
  const { status, code } = FAULTS[reason]
  const isOfMethod = reason === 'unknown-method' || reason === 'invalid-params'
  return {
    status: isOfMethod && !isModern ? 200 : status,
    body: { jsonrpc: '2.0', id: id ?? null, error: { code, message: text, ...(data && { data }) } },
  }
}

export function readMessage(body: unknown, headers: IncomingHttpHeaders): Message | ProtocolFault {
  if (!isRecord(body) || body.jsonrpc !== '2.0' || typeof body.method !== 'string')
    return failProtocol('not-a-message', 'Expected one JSON-RPC request or notification')
  const { id, method, params = {} } = body
  if (id !== undefined && typeof id !== 'string' && typeof id !== 'number')
    return failProtocol('not-a-message', 'Expected an id that is a string or a number')
  if (!isRecord(params)) return failProtocol('invalid-params', 'Expected an object in params', { id })
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
  return failProtocol('unsupported-version', `Supported versions: ${VERSIONS.join(', ')}`, { id, data })
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
    failProtocol('header-mismatch', `The header ${header} is missing, or does not match the message`, { id })
  if (id !== undefined && version === undefined)
    return failProtocol('invalid-params', `Expected ${VERSION_KEY} in _meta`, { id })
  if (version !== undefined && headers['mcp-protocol-version'] !== version)
    return mismatch('MCP-Protocol-Version')
  if (version !== undefined && version !== MODERN) return failVersion(id, version)
  if (headers['mcp-method'] !== method) return mismatch('Mcp-Method')
  const named = NAMED[method]
  if (named !== undefined && readHeader(headers['mcp-name']) !== params[named]) return mismatch('Mcp-Name')
  if (id !== undefined && !isRecord(meta[CAPABILITIES_KEY]))
    return failProtocol('invalid-params', `Expected ${CAPABILITIES_KEY} in _meta`, { id })
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
