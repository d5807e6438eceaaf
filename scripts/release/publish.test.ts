import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, it } from 'node:test'
import { parse } from 'yaml'

const ROOT = resolve(import.meta.dirname, '../..')
const text = readText('.github/workflows/publish.yml')

interface Step {
  readonly uses?: string
  readonly run?: string
  readonly with?: Readonly<Record<string, unknown>>
}

const jobs: Readonly<Record<string, { readonly steps: readonly Step[] }>> = parse(text).jobs

describe('the workflow that publishes a release', () => {
  it('names each action by a commit, with its version', () => {
    const actions = text.split('\n').filter(line => /\buses:/.test(line))
    assert(actions.length > 5)
    for (const action of actions) assert.match(action, /uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/)
  })

  it('tags the image as the chart names it: by the version, without a v', () => {
    const chart = parse(readText('deploy/helm/sallyport/Chart.yaml'))
    const { version } = JSON.parse(readText('package.json'))
    assert.equal(chart.appVersion, version)
    assert.match(
      readText('deploy/helm/sallyport/templates/_helpers.tpl'),
      /default \.Chart\.AppVersion \.Values\.image\.tag/,
    )
    const names = runOf('image').find(run => run.includes('version='))
    assert.match(names ?? '', /version=\$\{GITHUB_REF_NAME#v\}/)
    const build = jobs.image?.steps.find(({ uses }) => uses?.startsWith('docker/build-push-action@'))
    assert.match(String(build?.with?.tags), /\/sallyport:\$\{\{ steps\.names\.outputs\.version \}\}$/)
  })

  it('pushes the chart from a file that is not that of the npm package', () => {
    const script = runOf('packages').join('\n')
    assert.match(script, /helm push "release\/sallyport-chart-\$version\.tgz"/)
    assert.match(script, /npm publish "\.\/release\/\$name-\$version\.tgz" --provenance/)
  })

  it('publishes the notes of the CHANGELOG, signed checksums, and a signed image', () => {
    const script = runOf('packages').join('\n')
    assert.match(script, /--notes-file release\/notes\.md/)
    assert.match(script, /cosign sign-blob .*release\/SHA256SUMS$/m)
    assert.match(runOf('image').join('\n'), /cosign sign --yes "\$IMAGE"/)
  })

  it('makes the files by the script of the release, with the repository in the manifests', () => {
    const script = runOf('packages').join('\n')
    assert.match(
      script,
      /scripts\/release\/artifacts\.ts release --repository "\$GITHUB_SERVER_URL\/\$GITHUB_REPOSITORY"/,
    )
    assert.match(readText('scripts/release.ts'), /'scripts\/release\/artifacts\.ts'/)
  })
})

function runOf(job: string): readonly string[] {
  return jobs[job]?.steps.flatMap(({ run }) => run ?? []) ?? []
}

function readText(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}
