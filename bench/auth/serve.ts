/** A server of `bench/auth.ts`, in a process of its own. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { serveContender } from '../shared/contender.ts'

const folder = mkdtempSync(join(tmpdir(), 'sallyport-bench-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
const [, , name] = process.argv

if (name === 'sallyport') serveContender(await (await import('./own.ts')).startOwn(folder))
else {
  const { startOidcProvider } = await import('./oidc-provider.ts')
  serveContender(await startOidcProvider(name === 'durable' ? folder : undefined))
}
