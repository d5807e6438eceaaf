import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  formatTimeLeft,
  html,
  raw,
  renderAlert,
  renderBadge,
  renderCountdown,
  renderEmptyState,
  renderErrorPage,
  renderField,
  renderPage,
  version,
} from './index.ts'

const NOW = Date.UTC(2026, 10, 13, 14, 4, 31)

describe('html', () => {
  it('escapes text in content and in attributes', () => {
    const nasty = `"><script>alert('x')</script>&`
    assert.equal(
      html`<a title="${nasty}">${nasty}</a>`.markup,
      '<a title="&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;">&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;</a>',
    )
  })

  it('keeps Html values, lists of them, and raw markup', () => {
    assert.equal(html`${[html`<b>1</b>`, '<']}${raw('<i>')}`.markup, '<b>1</b>&lt;<i>')
  })

  it('leaves out booleans, null and undefined, and keeps zero', () => {
    assert.equal(html`${false}${null}${undefined}${true}${0}`.markup, '0')
  })
})

describe('renderPage', () => {
  const plain = renderPage({ title: 'Patients <1>', bar: { kind: 'portal' } }, html`<h1>Patients</h1>`).markup

  it('renders a whole document with language, title and a skip link', () => {
    assert.match(plain, /^<!doctype html>\n<html lang="en">/)
    assert.match(plain, /<title>Patients &lt;1&gt; – Sallyport<\/title>/)
    assert.match(plain, /<a class="skip" href="#main">/)
    assert.match(plain, /<main id="main" class="wrap">/)
    assert.ok(plain.includes(`Sallyport ${version}`))
  })

  it('contains no inline code, no styles and no URLs of other sites (HTTP-5)', () => {
    assert.doesNotMatch(plain, /<script(?! src="\/assets\/)|<style|style="|onclick|https?:\/\//)
  })

  it('shows name and "Sign out" only after login', () => {
    assert.doesNotMatch(plain, /Sign out/)
    const signedIn = renderPage(
      { title: 'x', bar: { kind: 'portal', who: 'Dr. Robin Ahmadi' } },
      html``,
    ).markup
    assert.match(
      signedIn,
      /<form class="who" method="post" action="\/logout"><span class="who__name">Dr. Robin Ahmadi/,
    )
  })

  it('marks the link to the current page', () => {
    const links = [
      { href: '/portal', text: 'Patients', current: true },
      { href: '/activity', text: 'Activity' },
    ]
    const { markup } = renderPage({ title: 'x', bar: { kind: 'portal', links } }, html``)
    assert.match(markup, /<a href="\/portal" aria-current="page">Patients<\/a>/)
    assert.match(markup, /<a href="\/activity">Activity<\/a>/)
  })

  it('distinguishes done, current and next steps', () => {
    const bar = { kind: 'flow', steps: ['Sign in', 'Patient', 'Access'], current: 1 } as const
    const { markup } = renderPage({ title: 'x', bar }, html``)
    assert.match(markup, /<span>Sign in<\/span><span class="sr">, done<\/span>/)
    assert.match(markup, /<li aria-current="step"><span class="steps__no">2<\/span>/)
    assert.match(markup, /steps__no--next">3</)
  })

  it('states that sample patients are fictitious', () => {
    assert.doesNotMatch(plain, /Sample data|Synthetic/)
    const { markup } = renderPage({ title: 'x', bar: { kind: 'app' }, sampleData: true }, html``)
    assert.match(markup, /Sample data/)
    assert.match(markup, /Sample patients are fictitious\./)
  })
})

describe('renderErrorPage', () => {
  const options = {
    kind: 'refused',
    title: 'This launch was refused',
    text: ['The launch link was already used.', html`<b>No record was opened.</b>`],
    code: 'invalid_request',
    reason: 'Launch token <used> before',
    reference: '7F3K-92QD-0XTB',
    now: NOW,
    actions: [
      { href: '/portal', text: 'Go to patients' },
      { href: '/activity', text: 'See refused requests' },
    ],
  } as const

  it('shows event, effect and advice, then code, reason, time and reference', () => {
    const { markup } = renderErrorPage(options)
    assert.match(markup, /<h1>This launch was refused<\/h1>/)
    assert.match(markup, /<p><b>No record was opened\.<\/b><\/p>/)
    assert.match(markup, /<a class="btn" href="\/portal">/)
    assert.match(markup, /<a class="btn btn--quiet" href="\/activity">/)
    assert.match(markup, /<code>invalid_request<\/code>/)
    assert.match(markup, /Launch token &lt;used&gt; before/)
    assert.match(markup, /13-Nov-2026 \d\d:04:31 /)
    assert.match(markup, /<code>7F3K-92QD-0XTB<\/code>/)
  })

  it('distinguishes a refusal from an unavailable server in the picture', () => {
    assert.match(renderErrorPage(options).markup, /class="shut"/)
    assert.match(renderErrorPage({ ...options, kind: 'unavailable' }).markup, /class="away"/)
  })
})

describe('components', () => {
  it('shows an icon beside the word of a status', () => {
    assert.match(
      renderBadge('Allowed', 'ok').markup,
      /^<span class="badge badge--ok"><svg.*<\/svg>Allowed<\/span>$/,
    )
    assert.equal(renderBadge('Finished').markup, '<span class="badge">Finished</span>')
  })

  it('announces a bad alert at once', () => {
    assert.match(
      renderAlert('Wrong.', 'Try again.', 'bad').markup,
      /role="alert".*<b>Wrong\.<\/b> Try again\./,
    )
    assert.doesNotMatch(renderAlert('Fine.', 'Go on.', 'ok').markup, /role=/)
  })

  it('connects the error message of a field with it', () => {
    const { markup } = renderField({
      name: 'username',
      label: 'Username',
      value: '"x',
      error: 'Enter your username.',
    })
    assert.match(markup, /value="&quot;x"/)
    assert.match(markup, /aria-invalid="true" aria-describedby="username-error"/)
    assert.match(markup, /<p class="field__error" id="username-error">Enter your username\.<\/p>/)
  })

  it('offers one action in an empty state', () => {
    const { markup } = renderEmptyState({
      title: 'No patient matches “<x>”',
      text: 'Check.',
      action: { href: '/p', text: 'All' },
    })
    assert.match(markup, /“&lt;x&gt;”/)
    assert.match(markup, /href="\/p">All<\/a>/)
  })
})

describe('renderCountdown', () => {
  const started = NOW - 600_000

  it('shows the end, the time left, and a bar that shrinks by itself', () => {
    const { markup } = renderCountdown({ startedAt: started, endsAt: NOW + 1_200_000, now: NOW })
    assert.match(markup, /datetime="2026-11-13T14:24:31.000Z"/)
    assert.match(markup, /20 min left/)
    assert.match(markup, /<animate attributeName="width" from="66.7" to="0" dur="1200s" fill="freeze"\/>/)
    assert.doesNotMatch(markup, /countdown--soon/)
  })

  it('warns in the last five minutes and stops after the end', () => {
    assert.match(
      renderCountdown({ startedAt: started, endsAt: NOW + 299_000, now: NOW }).markup,
      /countdown--soon/,
    )
    const over = renderCountdown({ startedAt: started, endsAt: NOW - 1, now: NOW }).markup
    assert.match(over, /Ended/)
    assert.doesNotMatch(over, /animate/)
  })

  const texts: readonly (readonly [ms: number, text: string])[] = [
    [28_800_000, '8 h left'],
    [7_500_000, '2 h 5 min left'],
    [1_740_000, '29 min left'],
    [60_000, '1 min left'],
    [59_999, 'Less than a minute left'],
    [0, 'Ended'],
    [-5, 'Ended'],
  ]
  for (const [ms, text] of texts) {
    it(`shows ${text} for ${ms} ms`, () => {
      assert.equal(formatTimeLeft(ms), text)
    })
  }
})
