/** The examples that are servers survive requests that browsers never send. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { freePorts } from '../test/support/free-ports.ts'

async function send(port: number, path: string): Promise<number | undefined> {
  const sent = request({ host: 'localhost', port, path, agent: false }).end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  response.resume()
  return response.statusCode
}

describe('the examples that are servers', () => {
  for (const [file, status] of [
    ['launch.mjs', 404],
    ['apps/server.mjs', 500],
  ] as const)
    it(`${file} answers requests whose target is no URL, and goes on`, async () => {
      const [port = 0] = await freePorts(1)
      const folder = mkdtempSync(join(tmpdir(), 'sallyport-example-'))
      const source = readFileSync(join(import.meta.dirname, file), 'utf8')
      writeFileSync(join(folder, 'app.mjs'), source.replaceAll('localhost:3000', `localhost:${port}`))
      const app = spawn(process.execPath, [join(folder, 'app.mjs')], {
        env: { PORT: String(port) },
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      try {
        await once(app.stdout, 'data')
        for (const path of ['//', 'http://[', '///']) assert.equal(await send(port, path), status, path)
        assert.equal(await send(port, '/favicon.ico'), 404)
      } finally {
        app.kill()
        if (app.exitCode === null) await once(app, 'close')
        rmSync(folder, { recursive: true, force: true })
      }
    })
})
