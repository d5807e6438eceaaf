import type { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { remember } from '../core/index.ts'

/** What one connection may occupy (docs/limits.md). */
export const CONNECTION_LIMITS = {
  /** Requests that have arrived and wait until the earlier ones are answered. */
  waiting: 32,
  /** How long a response waits for a client that reads nothing of it, in milliseconds. */
  unreadMs: 30_000,
} as const

type ConnectionLimits = Readonly<Record<keyof typeof CONNECTION_LIMITS, number>>

interface Turn {
  readonly response: ServerResponse
  serve(): void
}

interface Connection {
  readonly socket: Socket
  /** The response that is being made or sent. */
  current: ServerResponse | undefined
  readonly waiting: Turn[]
}

const connections = new WeakMap<Socket, Connection>()

/**
 * Calls `next` when the earlier requests of the same connection are answered and their responses are sent. Node itself
 * serves pipelined requests (RFC 9112, 9.3.2) all at once: one connection could fill the memory with responses that it
 * never reads, and delay all others. The connection is closed if too many requests wait, or if the client stops reading.
 *
 * This is a middleware of express and a hook of fastify (`onRequest`, with the raw request and response). A request may
 * pass it more than once.
 */
export function serveInTurn(
  { socket, httpVersionMajor }: IncomingMessage,
  response: ServerResponse,
  next: () => void,
  { waiting, unreadMs }: ConnectionLimits = CONNECTION_LIMITS,
): void {
  // HTTP/2 limits its streams itself. An injected request has no connection.
  const connection = httpVersionMajor === 1 && socket instanceof Socket ? openConnection(socket) : undefined
  if (!connection || connection.current === response) next()
  else if (!socket.destroyed) {
    const serve = () => {
      closeIfUnread(socket, response, unreadMs)
      next()
    }
    if (!connection.current) start(connection, { response, serve })
    else if (connection.waiting.length < waiting) connection.waiting.push({ response, serve })
    else closeConnection(socket)
  }
}

function openConnection(socket: Socket): Connection {
  return remember(connections, socket, () => ({ socket, current: undefined, waiting: [] }))
}

function start(connection: Connection, { response, serve }: Turn): void {
  connection.current = response
  response.once('close', () => startNext(connection))
  serve()
}

/** In a later turn of the event loop, so that other connections are served in between. */
function startNext(connection: Connection): void {
  const next = connection.waiting.shift()
  connection.current = next?.response
  if (next)
    setImmediate(() => {
      if (!connection.socket.destroyed) start(connection, next)
    })
}

/** The result of a callback by which llhttp stops: no further message follows. */
const NO_FURTHER_MESSAGE = 2

/**
 * The data that Node has read may hold a thousand further requests. Node would create them all, even for a closed
 * connection, unless its parser stops. The parser is not documented; without it the limit holds, at a higher cost.
 */
function closeConnection(socket: Socket): void {
  if ('parser' in socket && typeof socket.parser === 'object' && socket.parser !== null)
    Object.assign(socket.parser, { onIncoming: () => NO_FURTHER_MESSAGE })
  socket.destroy()
}

/** Unless the host has set a time-out of its own. A response that is still being made has nothing to read. */
function closeIfUnread(socket: Socket, response: ServerResponse, unreadMs: number): void {
  if (socket.timeout && socket.timeout !== unreadMs) return
  response.setTimeout(unreadMs, () => {
    if (socket.writableLength > 0) socket.destroy()
  })
}
