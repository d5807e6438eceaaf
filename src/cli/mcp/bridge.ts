import { createInterface } from 'node:readline'
import { describeError, isRecord, parseJson, readText, toRecord } from '../../core/index.ts'

/** The access tokens of a bridge. Each function fails with an error whose message is for the person. */
export interface TokenSource {
  get(): Promise<string>
  /** Another token than one that was refused. */
  renew(refused: string): Promise<string>
  /** A token with further scopes. Undefined: nobody can be asked. */
  extend(refused: string, scopes: string): Promise<string | undefined>
  /** Nobody waits for a token any more. */
  close(): void
}

export interface BridgeOptions {
  /** The endpoint of assistants. */
  readonly url: string
  readonly input: NodeJS.ReadableStream
  /** Writes a message. */
  readonly write: (line: string) => void
  /** Tells the person something that contains no secret. */
  readonly note: (text: string) => void
  readonly tokens: TokenSource
}

/** Messages that are sent at once. */
const AT_ONCE = 8

/** Longer than the endpoint works on a call. */
const RESPONSE_MS = 60_000

const NO_JSON = -32700
const FAILED = -32000

type Message = Readonly<Record<string, unknown>>

/** Carries messages of MCP, one a line, to the endpoint, and its answers back, until the input ends (MCP, stdio transport). */
export async function runBridge(options: BridgeOptions): Promise<void> {
  const { input, write, note, tokens } = options
  const pending = new Set<Promise<void>>()
  const session: Session = { version: undefined }
  for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
    if (line.trim() === '') continue
    const message = parseJson(line)
    if (!isRecord(message)) {
      write(formatError(null, NO_JSON, 'Expected one JSON-RPC message on a line'))
      continue
    }
    const answered = forward(options, session, message)
      .catch((error: unknown) => {
        const text = describeError(error)
        note(`Cannot answer ${readText(message.method) ?? 'a message'}: ${text}`)
        return isRequest(message) ? formatError(message.id, FAILED, text) : undefined
      })
      .then(answer => {
        pending.delete(answered)
        if (answer !== undefined) write(answer)
      })
    pending.add(answered)
    // The version that it agrees on goes with all others.
    if (message.method === 'initialize') await answered
    if (pending.size >= AT_ONCE) await Promise.race(pending)
  }
  tokens.close()
  await Promise.all(pending)
}

interface Session {
  /** As agreed by `initialize`. Since 2026-07-28 each message names its version. */
  version: string | undefined
}

function isRequest({ id }: Message): boolean {
  return id !== undefined
}

function formatError(id: unknown, code: number, message: string): string {
  return JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } })
}

/** The answer on one line. Undefined: a notification has none. */
async function forward(
  { url, tokens }: BridgeOptions,
  session: Session,
  message: Message,
): Promise<string | undefined> {
  const send = (token: string) => post(url, token, session, message)
  let token = await tokens.get()
  let response = await send(token)
  if (response.status === 401) {
    token = await tokens.renew(token)
    response = await send(token)
  }
  const lacking = findLackingScopes(response)
  const extended = lacking === undefined ? undefined : await tokens.extend(token, lacking)
  if (extended !== undefined) response = await send(extended)
  const text = await response.text()
  if (!isRequest(message)) return undefined
  const answer = parseJson(text)
  if (!isRecord(answer) || answer.jsonrpc !== '2.0')
    throw new Error(`the server answered with status ${response.status}`)
  keepVersion(session, message, answer)
  // JSON has line breaks only between its tokens.
  return text.replace(/[\r\n]+/g, ' ')
}

function findLackingScopes({ status, headers }: Response): string | undefined {
  const challenge = headers.get('www-authenticate') ?? ''
  if (status !== 403 || !challenge.includes('error="insufficient_scope"')) return undefined
  return /scope="([^"]*)"/.exec(challenge.replace('error="insufficient_scope"', ''))?.[1]
}

function keepVersion(session: Session, { method }: Message, { result }: Message): void {
  if (method === 'initialize' && isRecord(result)) session.version = readText(result.protocolVersion)
}

async function post(url: string, token: string, session: Session, message: Message): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: {
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      authorization: `Bearer ${token}`,
      ...describeMessage(session, message),
    },
    body: JSON.stringify(message),
    redirect: 'error',
    signal: AbortSignal.timeout(RESPONSE_MS),
  })
}

/** The headers that repeat the message (MCP 2026-07-28), or the version that `initialize` agreed on. */
function describeMessage(
  { version }: Session,
  { method, params }: Message,
): Readonly<Record<string, string>> {
  const { _meta, name, uri } = toRecord(params)
  const stated = isRecord(_meta) ? readText(_meta['io.modelcontextprotocol/protocolVersion']) : undefined
  if (stated === undefined) return version === undefined ? {} : { 'mcp-protocol-version': version }
  const named = readText(name) ?? readText(uri)
  return {
    'mcp-protocol-version': stated,
    'mcp-method': readText(method) ?? '',
    ...(named !== undefined && { 'mcp-name': encodeHeader(named) }),
  }
}

function encodeHeader(text: string): string {
  return /^[\x20-\x7e]*$/.test(text) ? text : `=?base64?${Buffer.from(text).toString('base64')}?=`
}
