import { createServer } from 'node:net'

/** Ports that were free a moment ago, each another. */
export async function freePorts(count: number): Promise<readonly number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer()
      await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
      return server
    }),
  )
  const ports = servers.map(server => {
    const address = server.address()
    if (address === null || typeof address === 'string') throw new Error('Cannot find a free port')
    return address.port
  })
  await Promise.all(servers.map(server => new Promise(resolve => server.close(resolve))))
  return ports
}
