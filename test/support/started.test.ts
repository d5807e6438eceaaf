import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { describe, it } from 'node:test'

describe('a process that a test starts', () => {
  it('ends with a test that ends early', { timeout: 60_000 }, async t => {
    const server = createServer().listen(0, '127.0.0.1')
    t.after(() => server.close())
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const connected = once(server, 'connection')
    const program = [process.execPath, '-e', `require('node:net').connect(${port}, '127.0.0.1').resume()`]
    const script = `
      import { startProcess } from ${JSON.stringify(import.meta.resolve('./started.ts'))}
      startProcess([], { env: {}, folder: process.cwd() }, ${JSON.stringify(program)})
      process.stdin.once('data', () => process.exit(1))`
    const test = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['pipe', 'inherit', 'inherit'],
    })
    const [socket] = await connected
    const closed = once(socket.resume(), 'close')
    test.stdin.write('end\n')
    const [exitCode] = await once(test, 'close')
    assert.equal(exitCode, 1)
    await closed
  })
})
