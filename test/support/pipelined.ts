import { connect } from 'node:net'
import { connect as connectSecurely } from 'node:tls'

const RESPONSE = /HTTP\/1\.1 \d{3} /g

/**
 * Sends many requests over one connection at once, and reads the responses. Resolves with their statuses when all have
 * arrived; with 'closed' if the server closes the connection before.
 */
export function sendPipelined(
  url: string,
  count: number,
  headers: readonly string[] = [],
): Promise<readonly string[] | 'closed'> {
  const { protocol, hostname: name, port, host, pathname } = new URL(url)
  const hostname = name.replace(/^\[|\]$/g, '')
  const socket =
    protocol === 'https:'
      ? connectSecurely({ port: Number(port), host: hostname, rejectUnauthorized: false })
      : connect(Number(port), hostname)
  const request = [`GET ${pathname} HTTP/1.1`, `Host: ${host}`, ...headers, '', ''].join('\r\n')
  socket.write(request.repeat(count))
  return new Promise(resolve => {
    let text = ''
    socket.on('data', chunk => {
      text += chunk
      const statuses = text.match(RESPONSE) ?? []
      if (statuses.length < count) return
      resolve(statuses.map(line => line.split(' ')[1] ?? ''))
      socket.destroy()
    })
    socket.on('error', () => {})
    socket.on('close', () => resolve('closed'))
  })
}
