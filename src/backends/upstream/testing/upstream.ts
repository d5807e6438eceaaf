/**
 * The embedded FHIR server, unguarded, as an upstream in a process of its own. Says where it is on its first line, and
 * ends with its standard input.
 */
import { createServer } from 'node:net'
import { fhirServer } from '../../sqlite/index.ts'

const port = await freePort()
const baseUrl = `http://127.0.0.1:${port}/r4`
const server = await fhirServer({ baseUrl, dataFile: ':memory:', smartConfiguration: {} })
await server.listen({ port, host: '127.0.0.1' })
process.stdout.write(`${baseUrl}\n`)
process.stdin.on('end', () => process.exit(0)).resume()

function freePort(): Promise<number> {
  return new Promise(resolve => {
    const probe = createServer()
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address()
      probe.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })
}
