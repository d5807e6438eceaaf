/**
 * An assistant in one file, without a library and without a model: it summarizes a record and proposes one change by rules.
 * `node examples/agent.mjs sallyport mcp --client <id> --patient <id>` starts it with the command that connects it; without
 * `--scope "openid fhirUser patient/*.cruds"` it only reads. A model takes the place of `decide`.
 */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

const YEAR_MS = 365 * 24 * 60 * 60 * 1000
const A1C = 'http://loinc.org|4548-4'

/** MCP over the standard input and output of a command: one JSON-RPC message a line. */
function connect([command, ...args]) {
  const server = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const waiting = new Map()
  createInterface({ input: server.stdout }).on('line', line => {
    const { id, result, error } = JSON.parse(line)
    const { resolve, reject } = waiting.get(id)
    if (error) reject(new Error(error.message))
    else resolve(result)
  })
  server.on('error', fail)
  server.on('close', code => {
    for (const { reject } of waiting.values()) reject(new Error(`The command ended with ${code}`))
  })
  const send = message => server.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  const request = (method, params = {}) =>
    new Promise((resolve, reject) => {
      const id = waiting.size
      waiting.set(id, { resolve, reject })
      send({ id, method, params })
    })
  return {
    request,
    notify: method => send({ method }),
    /** The text of a result is for a model, its structuredContent for a program. */
    async call(name, given = {}) {
      const result = await request('tools/call', { name, arguments: given })
      if (result.isError) throw new Error(`${name}: ${result.content[0].text}`)
      return { text: result.content[0].text, ...result.structuredContent }
    },
    close: () => server.stdin.end(),
  }
}

/** What a model would do: decides by the facts whether to propose something. */
function decide(patient, [latest]) {
  if (latest?.date && Date.now() - Date.parse(latest.date) < YEAR_MS) return undefined
  const known = latest ? `The last one is ${latest.reference} of ${latest.date}.` : 'The record has none.'
  return {
    action: 'create',
    type: 'ServiceRequest',
    resource: {
      resourceType: 'ServiceRequest',
      status: 'draft',
      intent: 'proposal',
      code: { coding: [{ system: 'http://loinc.org', code: '4548-4' }], text: 'Haemoglobin A1c' },
      subject: { reference: patient },
    },
    reason: `No haemoglobin A1c within a year. ${known}`,
  }
}

async function run(command) {
  const server = connect(command)
  const clientInfo = { name: 'example-agent', version: '1.0.0' }
  await server.request('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo })
  server.notify('notifications/initialized')
  const { tools } = await server.request('tools/list')
  const { patient, text } = await server.call('get_patient_summary')
  console.log(`${text}\n`)
  const { rows } = await server.call('search', {
    type: 'Observation',
    parameters: { code: A1C, _sort: '-date' },
    count: 1,
  })
  const change = decide(patient.reference, rows)
  if (!change) console.log('Nothing to propose.')
  else if (!tools.some(tool => tool.name === 'propose_change'))
    console.log(`${change.reason} It may not propose anything.`)
  else {
    console.log((await server.call('propose_change', change)).text)
    console.log((await server.call('list_proposals')).text)
  }
  server.close()
}

function fail(error) {
  console.error(error.message)
  process.exit(1)
}

const command = process.argv.slice(2)
if (command.length === 0)
  fail(new Error('Usage: node examples/agent.mjs sallyport mcp --client <id> --patient <id>'))
run(command).catch(fail)
