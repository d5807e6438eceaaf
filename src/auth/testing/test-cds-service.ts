import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { isRecord } from '../../core/index.ts'

/** A request to the service: the hook of CDS Hooks 2.0, and the JWT of the client. */
export interface ReceivedHook {
  readonly path: string
  readonly jwt: string
  readonly hook: Readonly<Record<string, unknown>>
}

/** A status with a body, or a body that is sent as it is. */
export type CdsResponse = object | string | number

export interface TestCdsService {
  readonly url: string
  readonly received: ReceivedHook[]
  /** Sets the response of the next requests. */
  respond(how: (hook: ReceivedHook) => CdsResponse | Promise<CdsResponse>): void
  close(): Promise<void>
}

/** Starts a CDS service on a free port. At first it has no cards. */
export async function startCdsService(): Promise<TestCdsService> {
  const received: ReceivedHook[] = []
  let respond: (hook: ReceivedHook) => CdsResponse | Promise<CdsResponse> = () => ({ cards: [] })
  const server = createServer(async (request, response) => {
    const hook = await readHook(request)
    received.push(hook)
    const answer = await respond(hook)
    response.writeHead(typeof answer === 'number' ? answer : 200, { 'content-type': 'application/json' })
    response.end(typeof answer === 'object' ? JSON.stringify(answer) : String(answer))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('Cannot find the port of the service')
  return {
    url: `http://127.0.0.1:${address.port}`,
    received,
    respond: how => {
      respond = how
    },
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

async function readHook(request: IncomingMessage): Promise<ReceivedHook> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  const body: unknown = JSON.parse(Buffer.concat(chunks).toString())
  return {
    path: `${request.method} ${request.url}`,
    jwt: /^Bearer (\S+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '',
    hook: isRecord(body) ? body : {},
  }
}
