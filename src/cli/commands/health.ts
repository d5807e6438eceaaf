import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { readConfiguration, type Settings } from '../../config/index.ts'
import { describeError, HOW } from '../../core/index.ts'
import { type Command, isSet } from '../command.ts'

const TIMEOUT_MS = 4000

const health: Command = {
  usage: `
Usage: ${HOW} health [--ready] [<url>]

Asks the servers of this machine, or the URL, whether they run. For the
healthcheck of a container, which has neither a shell nor curl.

  --ready   ask whether they are ready: database, keys and upstream respond

Exit code: 0 if at least one server runs and none has a problem, otherwise 1.`,
  positionals: { min: 0, max: 1 },
  async run(args, io) {
    const [url] = args.positionals
    const path = isSet(args, 'ready') ? '/readyz' : '/healthz'
    const urls = url === undefined ? listUrls(readConfiguration(io.env, io.cwd).settings, path) : [url]
    const answers = await Promise.all(urls.map(async asked => ({ asked, status: await ask(asked) })))
    const found = answers.filter(({ status }) => status !== 'ECONNREFUSED')
    for (const { asked, status } of found.length > 0 ? found : answers)
      io.stdout.write(`${status} ${asked}\n`)
    return found.length > 0 && found.every(({ status }) => status === 200) ? 0 : 1
  },
}

function listUrls({ authPort, fhirPort, appPort, tlsCert }: Settings, path: string): readonly string[] {
  const scheme = tlsCert === undefined ? 'http' : 'https'
  return [authPort, fhirPort, appPort].map(port => `${scheme}://localhost:${port}${path}`)
}

/** The status, or the reason why there is none. */
function ask(url: string): Promise<number | string> {
  const { promise, resolve } = Promise.withResolvers<number | string>()
  const send = url.startsWith('https:') ? requestHttps : requestHttp
  // The certificate names the public host. Nothing secret is sent, and only the status is read.
  const request = send(url, { timeout: TIMEOUT_MS, rejectUnauthorized: false }, response => {
    response.destroy()
    resolve(response.statusCode ?? 0)
  })
  request.on('timeout', () => resolve('no response from'))
  request.on('error', error => resolve('code' in error ? String(error.code) : describeError(error)))
  request.end()
  return promise.finally(() => request.destroy())
}

export const commands = { health }
