import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { sallyport } from '../../../test/support/command-line.ts'

const folder = mkdtempSync(join(tmpdir(), 'completion-'))
after(() => rmSync(folder, { recursive: true }))

async function writeScript(shell: string): Promise<string> {
  const path = join(folder, shell)
  writeFileSync(path, (await sallyport(['completion', shell])).stdout)
  return path
}

function isInstalled(shell: string): boolean {
  return spawnSync(shell, ['-c', 'exit 0']).status === 0
}

/** What the shell offers at the end of each line. */
const COMPLETE: Readonly<Record<string, (script: string, line: string) => string>> = {
  bash: (script, line) =>
    `source ${script}; COMP_WORDS=(${line}); [[ "${line}" == *" " ]] && COMP_WORDS+=(''); COMP_CWORD=$((\${#COMP_WORDS[@]}-1));
    _sallyport; printf '%s\\n' "\${COMPREPLY[@]}"`,
  fish: (script, line) => `source ${script}; complete -C "${line}" | string replace -r '\\t.*' ''`,
}

describe('sallyport completion', () => {
  for (const [shell, complete] of Object.entries(COMPLETE))
    it(`completes commands and options in ${shell} (CLI-11)`, {
      skip: !isInstalled(shell) && `${shell} is not installed`,
    }, async () => {
      const script = await writeScript(shell)
      const offered = (line: string) =>
        spawnSync(shell, ['-c', complete(script, line)], { encoding: 'utf8' })
          .stdout.trim()
          .split('\n')
          .sort()
      assert.deepEqual(offered('sallyport cl'), ['client', 'clinician'])
      assert.deepEqual(offered('sallyport com'), ['completion'])
      assert.deepEqual(offered('sallyport upgrade '), ['apply', 'check'])
      assert.deepEqual(offered('sallyport client add --redirect'), ['--redirect-uri'])
      assert.deepEqual(offered('sallyport client add --id x --red'), ['--redirect-uri'])
      assert.deepEqual(offered('sallyport launch --client x --simulate acc'), [
        'access-token:bad-signature',
        'access-token:expired',
      ])
    })

  it('completes a value with a colon, which bash takes for three words (CLI-11)', async () => {
    const script = await writeScript('bash')
    const line =
      'COMP_WORDS=(sallyport launch --simulate token : s); COMP_CWORD=5; _sallyport; echo $COMPREPLY'
    const { stdout } = spawnSync('bash', ['-c', `source ${script}; ${line}`], { encoding: 'utf8' })
    assert.equal(stdout, 'slow\n')
  })

  it('defines a function for zsh, which accepts it if it is installed (CLI-11)', async () => {
    const script = await writeScript('zsh')
    assert.match((await sallyport(['completion', 'zsh'])).stdout, /^#compdef sallyport\n/)
    if (isInstalled('zsh')) assert.equal(spawnSync('zsh', ['-n', script]).status, 0)
  })

  it('exits with 2 for another shell', async () => {
    const { exitCode, stderr } = await sallyport(['completion', 'cmd'])
    assert.equal(exitCode, 2)
    assert.match(stderr, /^Unknown shell cmd: see /)
  })
})
