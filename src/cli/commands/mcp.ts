import { findDeveloperToolsProblem, getMcpUrl, type Settings } from '../../config/index.ts'
import { HOW } from '../../core/index.ts'
import {
  type Arguments,
  type Command,
  CommandFailure,
  failMisuse,
  getOptional,
  getRequired,
  type Io,
  isSet,
} from '../command.ts'
import type { TokenSource } from '../mcp/bridge.ts'
import { openInBrowser } from '../open-in-browser.ts'
import { loadSettings } from '../with-store.ts'

const SCOPE = 'launch/patient patient/*.rs'

const mcp: Command = {
  usage: `
Usage: ${HOW} mcp --client <id> [--patient <id>] [--scope "<scopes>"] [--url <endpoint>] [--browser] [--user <username>]

Connects a desktop assistant to the endpoint of assistants: MCP messages, one a line, on standard input and output. On loopback,
without --url and --browser, it issues the access tokens itself, as the command token does, for tests. Otherwise it opens a
browser, in which a person signs in, picks the patient and allows what the assistant asks for. The app must be a public one
with the redirect URI http://127.0.0.1/callback. It ends with its input.

Options:
  --client <id>       a registered app
  --patient <id>      the patient; in the browser, the only one that the person may pick
  --scope "<scopes>"  scopes to ask for (default: ${SCOPE}); more are asked for in the browser when a call needs them
  --url <endpoint>    the endpoint of another machine, such as https://fhir.example/fhir/mcp
  --browser           ask a person, also on loopback
  --user <username>   on loopback: the user for whom the assistant acts (default: clinician)

Example, in the configuration of a desktop assistant:
  {"mcpServers": {"record": {"command": "sallyport", "args": ["mcp", "--client", "assistant", "--patient", "patient-1"]}}}`,
  async run(args, io) {
    const settings = loadSettings(io)
    const url = readUrl(args) ?? getMcpUrl(settings)
    const isOurs = getOptional(args, 'url') === undefined
    if (isOurs && !settings.agents.enabled)
      throw new CommandFailure('Cannot connect an assistant: smart.agents.enabled is false')
    const isDirect = isOurs && !isSet(args, 'browser') && findDeveloperToolsProblem(settings) === undefined
    const tokens = isDirect ? await openDirectTokens(args, io, settings) : await askInBrowser(args, io, url)
    const { runBridge } = await import('../mcp/bridge.ts')
    const { stdin: input, stdout, stderr } = io
    const write = stdout.draw ?? stdout.write
    await runBridge({
      url,
      input,
      tokens,
      // JSON for a program: escapes for a terminal would change it.
      write: line => write.call(stdout, `${line}\n`),
      note: text => stderr.write(`${text}\n`),
    })
    return 0
  },
}

function readUrl(args: Arguments): string | undefined {
  const text = getOptional(args, 'url')
  const url = text === undefined ? undefined : URL.parse(text)
  if (url === null || (url && !/^https?:$/.test(url.protocol)))
    throw failMisuse(`Cannot use --url: expected a URL such as https://fhir.example/fhir/mcp`)
  return url?.href
}

/** The first token is issued now, so that a mistyped id ends the command. */
async function openDirectTokens(args: Arguments, io: Io, settings: Settings): Promise<TokenSource> {
  const { issueToken } = await import('./developer.ts')
  const { createTokens } = await import('../mcp/tokens.ts')
  const scope = getOptional(args, 'scope') ?? SCOPE
  const obtain = () => issueToken(args, io, { scope, resource: getMcpUrl(settings) })
  const tokens = createTokens({ obtain, canExtend: false })
  await tokens.get()
  return tokens
}

async function askInBrowser(args: Arguments, io: Io, url: string): Promise<TokenSource> {
  const { createBrowserTokens } = await import('../mcp/browser-tokens.ts')
  return createBrowserTokens({
    url,
    clientId: getRequired(args, 'client'),
    scope: getOptional(args, 'scope') ?? SCOPE,
    patientId: getOptional(args, 'patient'),
    async openLink(link) {
      io.stderr.write(`Allow the access in the browser: ${link}\n`)
      await openInBrowser(link, io)
    },
  })
}

export const commands = { mcp }
