import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, describe, it } from 'node:test'
import { CONNECTION_LIMITS, serveInTurn } from './index.ts'

const opened: { readonly server: Server; readonly sockets: Socket[] }[] = []
afterEach(() => {
  for (const { server, sockets } of opened.splice(0)) {
    for (const socket of sockets) socket.destroy()
    server.closeAllConnections()
    server.close()
  }
})

/** A server, and a function that connects to it and sends requests for these paths at once. */
async function open(listener: RequestListener, limits: { unreadMs?: number } = {}) {
  const server = createServer((request, response) =>
    serveInTurn(request, response, () => listener(request, response), { ...CONNECTION_LIMITS, ...limits }),
  )
  const sockets: Socket[] = []
  opened.push({ server, sockets })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const send = (...paths: readonly string[]) => {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => {})
    socket.write(paths.map(path => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`).join(''))
    sockets.push(socket)
    return socket
  }
  return { server, send }
}

async function readUntil(socket: Socket, last: string): Promise<string> {
  let text = ''
  for await (const chunk of socket) {
    text += chunk
    if (text.includes(last)) break
  }
  return text
}

const listPaths = (count: number) => Array.from({ length: count }, (_, at) => `/${at}.`)

describe('serveInTurn', () => {
  it('begins a request when the response to the one before is sent, and answers in order (HTTP-11)', async () => {
    const begun: { readonly url: string | undefined; readonly response: ServerResponse }[] = []
    let isUnfinished = false
    const { send } = await open(({ url }, response) => {
      isUnfinished ||= begun.some(it => !it.response.writableFinished)
      begun.push({ url, response })
      setImmediate(() => response.end(`body of ${url}`))
    })
    const paths = listPaths(20)
    const text = await readUntil(send(...paths), 'body of /19.')
    assert.equal(isUnfinished, false)
    assert.deepEqual(
      begun.map(it => it.url),
      paths,
    )
    assert.deepEqual(text.match(/(?<=body of )\/\d+\./g), paths)
  })

  it('serves other connections in between (HTTP-11)', async () => {
    const served: (string | undefined)[] = []
    const { send } = await open(({ url }, response) => {
      served.push(url)
      if (served.length === 1) send('/other.')
      response.end(`body of ${url}`)
    })
    await readUntil(send(...listPaths(33)), 'body of /32.')
    assert.ok(served.includes('/other.'), served.join(' '))
  })

  it('closes a connection on which too many requests wait, and does not read the rest (HTTP-11)', async () => {
    let arrived = 0
    const { server, send } = await open((_request, response) => setImmediate(() => response.end('ok')))
    server.on('request', () => {
      arrived += 1
    })
    await once(send(...listPaths(1_100)), 'close')
    assert.equal(arrived, CONNECTION_LIMITS.waiting + 2)
  })

  it('ends a response that is not read (HTTP-11)', async () => {
    const ended = Promise.withResolvers<ServerResponse>()
    const { send } = await open(
      (_request, response) => {
        response.once('close', () => ended.resolve(response))
        response.end(Buffer.alloc(32 * 1024 * 1024))
      },
      { unreadMs: 20 },
    )
    send('/').pause()
    assert.equal((await ended.promise).writableFinished, false)
  })

  it('does not end a response that takes long to make', async () => {
    let timeouts = 0
    const { send } = await open(
      ({ url }, response) => {
        response.once('timeout', () => {
          timeouts += 1
          response.end(`body of ${url}`)
        })
      },
      { unreadMs: 20 },
    )
    const text = await readUntil(send('/first.', '/second.'), 'body of /second.')
    assert.match(text, /body of \/first\./)
    assert.equal(timeouts, 2)
  })

  it('leaves the time-out of a host as it is', async () => {
    const timeouts: (number | undefined)[] = []
    const { server, send } = await open(({ socket, url }, response) => {
      timeouts.push(socket.timeout)
      response.end(`body of ${url}`)
    })
    server.setTimeout(70_000)
    await readUntil(send('/first.', '/second.'), 'body of /second.')
    assert.deepEqual(timeouts, [70_000, 70_000])
  })

  it('lets a request pass it twice', async () => {
    const { send } = await open((request, response) =>
      serveInTurn(request, response, () => response.end(`body of ${request.url}`)),
    )
    await readUntil(send('/first.', '/second.'), 'body of /second.')
  })
})
