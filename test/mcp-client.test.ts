/** The client of the MCP project reaches the endpoint of assistants by itself, with a person in a real browser. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { UnauthorizedError } from '@modelcontextprotocol/client'
import type { Page } from 'playwright-core'
import { inspectOnEveryScreen, useBrowser } from './support/browser.ts'
import {
  type AgentSite,
  allow,
  startAgentSite,
  TestAgent,
  writeAgentCertificate,
} from './support/mcp-agent.ts'
import { newPlace, type Place, type Started, startProcess } from './support/started.ts'

let place: Place
let servers: Started
let site: AgentSite
before(async () => {
  place = await newPlace()
  const certificate = writeAgentCertificate(place.folder)
  servers = startProcess(['start'], {
    ...place,
    env: { ...place.env, NODE_EXTRA_CA_CERTS: certificate.file },
  })
  site = await startAgentSite(certificate)
  await servers.printed(/is running/)
})
after(() => {
  site?.close()
  servers?.child.kill('SIGKILL')
  place?.remove()
})
const open = useBrowser()

async function openAgent(page: Page, era: 'legacy' | { readonly pin: string }): Promise<TestAgent> {
  await page.request.post(`${place.authUrl}/login`, {
    form: { username: 'clinician', password: 'sallyport' },
    maxRedirects: 0,
  })
  return new TestAgent({ site, url: `${place.fhirUrl}/mcp`, page, era })
}

/** The person picks a patient and allows what is asked for. */
async function pickAndAllow(page: Page): Promise<void> {
  await page.getByRole('heading', { level: 1, name: /^Choose a patient/ }).waitFor()
  await page.getByLabel('Find a patient by name').fill('Juniper')
  await page.getByRole('button', { name: 'Search' }).click()
  await page
    .getByRole('radio', { name: /^Juniper, Alba\s/ })
    .first()
    .check()
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.getByRole('heading', { level: 1, name: /^Allow Scribe/ }).waitFor()
  assert.match(
    await page.locator('main').innerText(),
    /This assistant\s+may read [a-z ,]+ of JUNIPER, Alba for 15 minutes\. It cannot change anything\./,
  )
  await inspectOnEveryScreen(page, 'agent-consent')
  await allow(page)
}

for (const era of ['2026-07-28', 'initialize'] as const)
  describe(`the client of the MCP project, ${era}`, () => {
    let page: Page
    let agent: TestAgent
    before(async () => {
      ;({ page } = await open())
      agent = await openAgent(page, era === 'initialize' ? 'legacy' : { pin: era })
    })
    after(() => agent?.close())

    it('finds the auth server, is known by its document, and gets a token after the consent (AGENT-1, MCP-2)', async () => {
      await agent.connect(pickAndAllow)
      const [asked] = agent.requests
      const sent = asked?.searchParams
      assert.equal(asked?.origin, place.authUrl)
      assert.equal(sent?.get('client_id'), site.documentUrl)
      assert.equal(sent?.get('resource'), `${place.fhirUrl}/mcp`)
      assert.ok(site.countFetches() > 0)
      assert.equal(agent.client.getServerVersion()?.name, 'sallyport')
    })

    it('calls tools, whose results conform to their schemas', async () => {
      const { tools } = await agent.client.listTools()
      assert.deepEqual(
        tools.slice(0, 5).map(it => it.name),
        ['get_patient_summary', 'search', 'read', 'describe_type', 'list_types'],
      )
      // The client checks structuredContent against outputSchema.
      const summary = await agent.client.callTool({ name: 'get_patient_summary', arguments: {} })
      assert.match(JSON.stringify(summary.content), /Juniper, Alba/)
      const found = await agent.client.callTool({
        name: 'search',
        arguments: { type: 'Observation', count: 2 },
      })
      const { rows } = found.structuredContent as { rows: { reference: string }[] }
      assert.equal(rows.length, 2)
      const read = await agent.client.callTool({
        name: 'read',
        arguments: { reference: rows[0]?.reference ?? '' },
      })
      assert.notEqual(read.isError, true)
    })

    it('shows the prompt and the patient', async () => {
      const { prompts } = await agent.client.listPrompts()
      const prompt = await agent.client.getPrompt({ name: prompts[0]?.name ?? '' })
      assert.match(JSON.stringify(prompt.messages), /get_patient_summary/)
      const { resources } = await agent.client.listResources()
      const patient = await agent.client.readResource({ uri: resources[0]?.uri ?? '' })
      assert.match(JSON.stringify(patient.contents), /Juniper/)
    })

    it('asks the person for what a call lacks, who sees what is added (AGENT-7)', async () => {
      const search = () =>
        agent.client.callTool({ name: 'search', arguments: { type: 'Immunization', count: 1 } })
      const found = await agent.withConsent(async asked => {
        await asked.getByRole('heading', { level: 1, name: /^(Allow Scribe|Choose a patient)/ }).waitFor()
        if (await asked.getByRole('heading', { name: /^Choose/ }).isVisible()) {
          await asked
            .getByRole('radio', { name: /^Juniper, Alba\s/ })
            .first()
            .check()
          await asked.getByRole('button', { name: 'Continue' }).click()
        }
        await asked.getByText(/This adds .*(vaccin|immuni)/i).waitFor()
        await inspectOnEveryScreen(asked, 'agent-step-up')
        await allow(asked)
      }, search)
      assert.notEqual(found.isError, true)
      assert.equal(agent.requests.length, 2)
      assert.match(agent.requests[1]?.searchParams.get('scope') ?? '', /patient\/Immunization\.[rs]+/)
      const summary = await agent.client.callTool({ name: 'get_patient_summary', arguments: {} })
      assert.match(JSON.stringify(summary.content), /Allergies/)
    })

    it('refreshes its token without the person', async () => {
      const before = agent.tokens()
      assert.ok(before?.refresh_token)
      agent.saveTokens({ ...before, access_token: 'expired' })
      const { tools } = await agent.client.listTools({}, { cacheMode: 'bypass' })
      assert.ok(tools.length >= 5)
      assert.notEqual(agent.tokens()?.access_token, 'expired')
      assert.equal(agent.requests.length, 2)
    })

    it('is refused within 5 seconds after the person ended its access (AGENT-8)', async () => {
      await page.goto(`${place.authUrl}/manage`)
      await inspectOnEveryScreen(page, 'agent-manage')
      await page.getByRole('link', { name: 'End access' }).first().click()
      await page.getByRole('button', { name: 'End access' }).click()
      const call = () => agent.client.callTool({ name: 'get_patient_summary', arguments: {} })
      let error: unknown
      for (let waited = 0; error === undefined && waited < 5_000; waited += 200) {
        error = await call().then(
          () => undefined,
          (thrown: unknown) => thrown,
        )
        if (error === undefined) await pause(200)
      }
      assert.ok(error instanceof UnauthorizedError)
      assert.equal(agent.requests.length, 3)
    })
  })
