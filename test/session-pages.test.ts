/** The page of docs/how-to/session-pages.md, with its proxy in front of the app server, in a real browser. */
import { spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { useBrowser } from './support/browser.ts'
import { freePorts } from './support/free-ports.ts'
import { newPlace, startProcess } from './support/started.ts'

const GUIDE = new URL('../docs/how-to/session-pages.md', import.meta.url)

describe('docs/how-to/session-pages.md', () => {
  const open = useBrowser()

  it('shows the patient of a launch in a page of one’s own, by its session', async t => {
    const [port] = await freePorts(1)
    const here = await newPlace({ SMART_APP_PORT: String(port) })
    t.after(() => here.remove())
    for (const file of ['server.mjs', 'page.html']) writeFileSync(join(here.folder, file), readBlock(file))
    const started = startProcess(['start'], here)
    t.after(() => started.child.kill())
    const proxy = spawn(process.execPath, ['server.mjs'], {
      cwd: here.folder,
      env: { PORT: new URL(here.appUrl).port, APP_PORT: String(port) },
    })
    t.after(() => proxy.kill())
    await started.printed(/is running/)
    const { page } = await open()
    await page.goto(`${here.authUrl}/lab/launch?client=sallyport-app&patient=patient-1&skip_login=1`)
    await page.waitForURL(`${here.appUrl}/s/*`)
    await page.getByRole('heading', { name: 'Juniper, Alba' }).waitFor()
    await page.getByRole('listitem').filter({ hasText: 'Essential hypertension' }).waitFor()
    await page.context().clearCookies()
    await page.reload()
    await page.getByText('The session has ended. Launch the app again.').waitFor()
  })
})

/** The block of code that follows the name of its file. */
function readBlock(file: string): string {
  const [, after = ''] = readFileSync(GUIDE, 'utf8').split(`In \`${file}\``)
  return /^```\w+\n(.*?)^```$/ms.exec(after)?.[1] ?? ''
}
