/**
 * The embedded FHIR server, unguarded, as an upstream in a process of its own: prints the URL of one, and of another with
 * data of its own for each line of standard input. Ends with standard input. An argument is the file of the first one.
 */
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { fhirServer } from '../../sqlite/index.ts'

const lines = createInterface(process.stdin)
lines.on('line', () => printServer()).on('close', () => process.exit(0))
await printServer(process.argv[2])

async function printServer(dataFile = ':memory:'): Promise<void> {
  const port = await freePort()
  const baseUrl = `http://127.0.0.1:${port}/r4`
  const server = await fhirServer({ baseUrl, dataFile, smartConfiguration: {} })
  await server.listen({ port, host: '127.0.0.1' })
  process.stdout.write(`${baseUrl}\n`)
}

function freePort(): Promise<number> {
  return new Promise(resolve => {
    const probe = createServer()
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address()
      probe.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })
}
