import { spawn } from 'node:child_process'
import type { Io } from './command.ts'

const OPENERS: Readonly<Record<string, string>> = { darwin: 'open', win32: 'explorer' }

export async function openInBrowser(link: string, { env, stderr }: Io): Promise<void> {
  const program = env.BROWSER || OPENERS[process.platform] || 'xdg-open'
  const browser = spawn(program, [link], { detached: true, stdio: 'ignore' })
  await new Promise<void>(resolve => {
    browser.once('spawn', resolve)
    browser.once('error', error => {
      stderr.write(
        `Cannot open the browser (${error.message}): open the link yourself, or name a browser in BROWSER\n`,
      )
      resolve()
    })
  })
  browser.unref()
}
