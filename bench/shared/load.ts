/** The load generator: writes prepared HTTP requests to sockets, so that it takes little of the processor. */
import { connect } from 'node:net'
import { setPriority } from 'node:os'

type Fields = Readonly<Record<string, string>>

export function formatRequest(line: string, headers: Fields, body = ''): string {
  const length = body === '' ? {} : { 'content-length': `${Buffer.byteLength(body)}` }
  const fields = Object.entries({ ...headers, ...length }).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${line} HTTP/1.1\r\n${fields.join('')}\r\n${body}`
}

export function formatForm({ pathname, host }: Pick<URL, 'pathname' | 'host'>, form: Fields): string {
  const headers = { host, 'content-type': 'application/x-www-form-urlencoded' }
  return formatRequest(`POST ${pathname}`, headers, new URLSearchParams(form).toString())
}

/** Sends all requests, with one outstanding request for each connection. Throws if one fails. */
export async function sendAll(port: number, texts: readonly string[], connections: number): Promise<void> {
  const rest = texts.values()
  prioritize(-10)
  await Promise.all(Array.from({ length: Math.min(connections, texts.length) }, () => sendInTurn(port, rest)))
  prioritize(0)
}

/** Needs a privilege. Without it the servers also wait for the generator on a busy machine. */
function prioritize(priority: number): void {
  try {
    setPriority(priority)
  } catch {}
}

/** Sends the next request when the response to the last one is complete. */
function sendInTurn(port: number, texts: Iterator<string>): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const socket = connect(port, '127.0.0.1').setNoDelay().setEncoding('latin1')
  let received = ''
  const sendNext = () => {
    const { value, done } = texts.next()
    received = ''
    if (done) socket.destroy()
    else socket.write(value, 'utf8')
  }
  socket.on('data', (chunk: string) => {
    received += chunk
    if (!isComplete(received)) return
    if (/^HTTP\/1\.1 20[01]/.test(received)) sendNext()
    else reject(new Error(`Cannot bench: ${received}`))
  })
  socket.on('error', reject)
  socket.on('close', () => (received === '' ? resolve() : reject(new Error(`Cannot bench: ${received}`))))
  sendNext()
  return promise
}

function isComplete(received: string): boolean {
  const end = received.indexOf('\r\n\r\n')
  if (end < 0) return false
  const length = /\r\ncontent-length: (\d+)/i.exec(received)?.[1]
  return length === undefined
    ? received.endsWith('\r\n0\r\n\r\n')
    : received.length >= end + 4 + Number(length)
}
