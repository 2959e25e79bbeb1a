/* The page around charts: style, script, escaping. */
#include "formats/chart.h"

#include <string.h>
#include "base/text.h"

/* The light and dark colors were chosen so that neighboring slots can be told apart by color-blind readers, too. Slots: 1 blue, 2
 * orange, 3 violet, 4 green, 5 yellow, 6 magenta, 7 red, 8 gray. */
static const char *const style[] = {
	":root{color-scheme:light dark;--page:#f6f6f3;--card:#fdfdfc;--ink:#181817;--soft:#52514e;--faint:#7c7a75;"
	"--line:#e4e3dc;--axis:#bdbcb2;--c1:#2a78d6;--c2:#d9541e;--c3:#4a3aa7;--c4:#0f8a5f;--c5:#b07800;--c6:#c2487d;"
	"--c7:#d03b3b;--c8:#7c7a75;--good:#0b8a3a;--warn:#b06a00;--bad:#c62f2f;--good-back:#e6f4ea;--warn-back:#fdf1dc;"
	"--bad-back:#fbe6e5;--plain-back:#ecebe6}\n",
	"@media(prefers-color-scheme:dark){:root{--page:#111110;--card:#1b1b1a;--ink:#f0efe9;--soft:#c3c2b7;--faint:#95938b;"
	"--line:#30302d;--axis:#4d4c47;--c1:#5598ea;--c2:#f0773f;--c3:#9d92f0;--c4:#2fae80;--c5:#d99b1c;--c6:#e0709f;"
	"--c7:#ee6a6a;--c8:#95938b;--good:#4cc477;--warn:#eaa83a;--bad:#f37b77;--good-back:#14291b;--warn-back:#2e2410;"
	"--bad-back:#331917;--plain-back:#262624}}\n",
	"*{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--ink);"
	"font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}"
	"main{max-width:1120px;margin:0 auto;padding:20px 16px 48px}h1{font-size:1.5rem;line-height:1.25;margin:0 0 2px;"
	"overflow-wrap:anywhere}h2{font-size:1.1rem;margin:32px 0 10px}h3{font-size:1rem;margin:20px 0 6px}p{margin:0 0 "
	"8px}.sub{color:var(--soft);margin:0 0 16px}"
	"small,.note{color:var(--soft);font-size:.85rem}\n",
	".verdict{border-radius:10px;padding:14px 18px;margin:0 0 16px;border-left:5px solid var(--soft);"
	"background:var(--plain-back)}.verdict h2{margin:0 0 4px;font-size:1.2rem}.verdict p:last-child{margin:0}"
	".verdict.good{border-color:var(--good);background:var(--good-back)}.verdict.warn{border-color:var(--warn);"
	"background:var(--warn-back)}.verdict.bad{border-color:var(--bad);background:var(--bad-back)}"
	".sign{display:inline-block;min-width:1.3em;font-weight:700}.good .sign{color:var(--good)}"
	".warn .sign{color:var(--warn)}.bad .sign{color:var(--bad)}\n",
	".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(138px,1fr));gap:10px;margin:0 0 18px}"
	".tile{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:10px 14px}"
	".tile b{display:block;font-size:1.35rem;line-height:1.3;font-weight:650}.tile span{color:var(--soft);font-size:.85rem;"
	"display:block;line-height:1.35}\n",
	".grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,430px),1fr));gap:14px}"
	"figure{background:var(--card);border:1px solid var(--line);border-radius:10px;margin:0;padding:12px 12px 8px;"
	"min-width:0;position:relative}figcaption{font-weight:600;margin:0 0 4px}.chart{display:block;width:100%;height:auto;"
	"overflow:visible}.chart text{font-family:inherit;font-size:12px;fill:var(--soft)}.chart .tick{fill:var(--faint);"
	"font-size:11.5px;font-variant-numeric:tabular-nums}.chart .label{fill:var(--soft)}.chart .level-label{fill:var(--faint);"
	"font-size:11.5px}\n",
	".rule{stroke:var(--line);stroke-width:1}.axis{stroke:var(--axis);"
	"stroke-width:1}.level{stroke:var(--faint);stroke-width:1.2;stroke-dasharray:5 4}.curve{fill:none;stroke-width:2;"
	"stroke-linejoin:round;stroke-linecap:round}.curve.thin{stroke-width:1.4}.band{opacity:.16}.dot{stroke:var(--card);"
	"stroke-width:.8}.phase{stroke:var(--soft);stroke-width:1;stroke-dasharray:2 3}.trouble{stroke:var(--bad);stroke-width:1;"
	"stroke-dasharray:3 3;opacity:.75}.chart .trouble-sign{fill:var(--bad);font-weight:700;font-size:14px}"
	".resumed{stroke:var(--faint);stroke-width:1;stroke-dasharray:1 4}.chart .resumed-sign{fill:var(--soft);font-size:13px}"
	".resumed-key{color:var(--soft);margin-right:6px}\n",
	".saved{fill:var(--faint)}.chart .end{font-weight:600}\n",
	".s1{stroke:var(--c1)}.s2{stroke:var(--c2)}.s3{stroke:var(--c3)}.s4{stroke:var(--c4)}.s5{stroke:var(--c5)}"
	".s6{stroke:var(--c6)}.s7{stroke:var(--c7)}.s8{stroke:var(--c8)}.f1{fill:var(--c1)}.f2{fill:var(--c2)}.f3{fill:var(--c3)}"
	".f4{fill:var(--c4)}.f5{fill:var(--c5)}.f6{fill:var(--c6)}.f7{fill:var(--c7)}.f8{fill:var(--c8)}\n"
	".chart .t1{fill:var(--c1)}.chart .t2{fill:var(--c2)}.chart .t3{fill:var(--c3)}.chart .t4{fill:var(--c4)}"
	".chart .t5{fill:var(--c5)}.chart .t6{fill:var(--c6)}.chart .t7{fill:var(--c7)}.chart .t8{fill:var(--c8)}"
	".b1{background:var(--c1)}.b2{background:var(--c2)}.b3{background:var(--c3)}.b4{background:var(--c4)}"
	".b5{background:var(--c5)}.b6{background:var(--c6)}.b7{background:var(--c7)}.b8{background:var(--c8)}\n",
	".legend{font-size:.82rem;color:var(--soft);margin:4px 0 2px;line-height:1.4}.legend span{white-space:nowrap;"
	"margin-right:12px;display:inline-block}.legend "
	"span:first-child{white-space:normal}.key{display:inline-block;width:16px;height:3px;border-radius:2px;"
	"vertical-align:middle;margin-right:6px}.key.dotted{width:9px;height:9px;border-radius:50%}.key.triangle{width:0;height:"
	"0;"
	"border:5px solid transparent;border-bottom:0;border-top:7px solid var(--faint);border-radius:0}"
	".nothing{color:var(--faint);margin:60px 0;text-align:center}\n",
	".switch{display:flex;flex-wrap:wrap;gap:6px;align-items:center;margin:0 0 12px;color:var(--soft);font-size:.9rem}"
	".pick{position:absolute;opacity:0;pointer-events:none}.switch label{border:1px solid "
	"var(--axis);border-radius:999px;padding:3px 14px;"
	"cursor:pointer;color:var(--ink)}#by-tokens:checked~.switch label[for=by-tokens],#by-time:checked~.switch "
	"label[for=by-time],#by-steps:checked~.switch "
	"label[for=by-steps]{background:var(--ink);color:var(--page);border-color:var(--ink)}#by-tokens:checked~.grid .time,"
	"#by-tokens:checked~.grid .steps,#by-time:checked~.grid .tokens,#by-time:checked~.grid .steps,#by-steps:checked~.grid "
	".tokens,"
	"#by-steps:checked~.grid .time{display:none}#by-tokens:focus-visible~.switch label[for=by-tokens],"
	"#by-time:focus-visible~.switch label[for=by-time],#by-steps:focus-visible~.switch label[for=by-steps]{outline:2px solid "
	"var(--c1);outline-offset:2px}\n",
	".scroll{overflow-x:auto;background:var(--card);border:1px solid var(--line);border-radius:10px}table{border-collapse:"
	"collapse;width:100%;font-size:.9rem;font-variant-numeric:tabular-nums}th,td{text-align:left;padding:6px 12px;"
	"border-bottom:1px solid var(--line);vertical-align:top}th{color:var(--soft);font-weight:600;white-space:nowrap}"
	"tr:last-child td,tbody tr:last-child "
	"th{border-bottom:0}td.n,th.n{text-align:right;white-space:nowrap}.events td.n{width:1%}details{margin:12px 0}"
	"summary{cursor:pointer;font-weight:600}summary::marker{color:var(--faint)}\n",
	".matrix{width:auto}.matrix th{white-space:nowrap}.matrix .cell{position:relative;text-align:center;padding:6px "
	"8px;min-width:2.6em}.cell i{position:absolute;inset:1px;border-radius:3px}.cell span{position:relative}"
	".zero{color:var(--faint)}.matrix .up{vertical-align:bottom;padding:6px 2px}.up span{writing-mode:vertical-rl;"
	"transform:rotate(180deg);max-height:11em;display:inline-block;line-height:1.2}"
	".matrix "
	"tr>th:first-child{max-width:min(20em,38vw);overflow:hidden;text-overflow:ellipsis;position:sticky;left:0;background:var("
	"--card);z-index:1}"
	".meter{width:34%;min-width:80px}.meter i{display:block;height:8px;border-radius:4px;margin-top:.45em;min-width:1px}"
	".alone{max-width:540px}.label{min-width:9em}.error{padding:10px 14px;border-bottom:1px solid "
	"var(--line);overflow-wrap:anywhere}"
	".error:last-child{border-bottom:0}.error p{margin:0 0 4px}.error p:first-child .p{margin:0 5px 0 0}.error "
	"b{margin-right:12px}"
	".error .pair{border-left:3px solid var(--line);padding-left:8px;color:var(--soft)}.wrong{color:var(--bad)}"
	".span{color:inherit;background:var(--good-back);border-bottom:2px solid var(--good);padding:0 2px}.span.odd{"
	"background:var(--bad-back);border-color:var(--bad)}.span sub{font-size:.7em;color:var(--soft);margin-left:3px}"
	".point{opacity:.45}tr.best td{font-weight:650;background:var(--good-back)}.star{color:var(--good)}\n",
	".guess{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:12px 14px;margin:0 0 12px}"
	".guess p{margin:0 0 6px}.guess table{font-size:.86rem;width:auto}.guess td,.guess th{padding:3px 10px 3px "
	"0}.blank{border-bottom:2px solid "
	"var(--c1);padding:0 2px;font-weight:600}.right{font-weight:700;color:var(--good)}.right::before{content:'\\2713\\00a0'}"
	".p{color:var(--faint);font-size:.92em;margin-right:10px;white-space:nowrap}.w{white-space:nowrap}\n",
	"code{font-size:.92em}#tip{position:fixed;z-index:9;pointer-events:none;background:var(--ink);color:var(--page);border-"
	"radius:6px;padding:5px 9px;"
	"font-size:.8rem;line-height:1.4;display:none;font-variant-numeric:tabular-nums}.cursor{stroke:var(--axis);stroke-width:"
	"1}"
	"footer{color:var(--faint);font-size:.82rem;margin-top:32px}dt{font-weight:600}dd{margin:0 0 8px;color:var(--soft)}"
	"@media(max-width:560px){main{padding:14px 10px 32px}.verdict{padding:12px 14px}figure{padding:10px 8px 6px}"
	".chart text{font-size:14.5px}.chart .tick,.chart .level-label{font-size:13.5px}.tiles{grid-template-columns:1fr 1fr}"
	".tile{padding:8px 10px}.tile b{font-size:1.15rem}th,td{padding:5px 8px}}\n",
	".mark-a{color:var(--c1)}.mark-b{color:var(--c2)}@media print{body{background:#fff}figure,.guess{break-inside:avoid}}\n",
};

/* Shows the values under the pointer: the nearest point of each curve, read back from its path. */
static const char *const script[] = {
	"(function(){var tip=document.getElementById('tip');\n"
	"function show(v,k){if(k==1)return(100*v).toPrecision(3)+' %';if(k==2)return v>=1e9?(v/1e9).toFixed(2)+' G':v>=1e6?"
	"(v/1e6).toFixed(2)+' M':v>=1e4?(v/1e3).toFixed(1)+' k':v.toFixed(0);if(k==3)return v>=7200?(v/3600).toFixed(2)+' h':"
	"v>=120?(v/60).toFixed(1)+' min':v.toFixed(1)+' s';if(k==4)return v.toPrecision(3);return v.toPrecision(4)}\n",
	"document.querySelectorAll('svg[data-box]').forEach(function(s){var d=s.dataset,b=d.box.split(' ').map(Number),"
	"k=d.kinds.split(' ').map(Number),x0=+d.x0,x1=+d.x1,y0=+d.y0,y1=+d.y1,line=null,curves=[];\n"
	"s.querySelectorAll('.curve').forEach(function(c){var p=(c.getAttribute('d').match(/[ML][^ML]+/g)||[]).map(function(t){"
	"return t.slice(1).split(' ').map(Number)});if(p.length)curves.push({name:c.dataset.label,points:p})});\n"
	"function value(y){var t=(y-b[2])/(b[3]-b[2]);return d.log=='1'?y0*Math.pow(y1/y0,t):y0+t*(y1-y0)}\n",
	"function away(){tip.style.display='none';if(line){line.remove();line=null}}\n"
	"s.addEventListener('pointermove',function(e){var m=s.getScreenCTM();if(!m||!curves.length)return;"
	"var x=(e.clientX-m.e)/m.a;if(x<b[0]-4||x>b[1]+4)return away();var text=[],at=null;\n"
	"curves.forEach(function(c){var "
	"best=null;c.points.forEach(function(p){if(!best||Math.abs(p[0]-x)<Math.abs(best[0]-x))best=p});"
	"if(Math.abs(best[0]-x)>30)return;if(at===null||Math.abs(best[0]-x)<Math.abs(at-x))at=best[0];text.push(c.name+': "
	"'+show(value(best[1]),"
	"k[1]))});if(at===null)return away();\n",
	"if(!line){line=document.createElementNS('http://www.w3.org/2000/svg','line');line.setAttribute('class','cursor');"
	"line.setAttribute('y1',b[2]);line.setAttribute('y2',b[3]);s.appendChild(line)}line.setAttribute('x1',at);"
	"line.setAttribute('x2',at);tip.textContent='';[show(x0+(at-b[0])/(b[1]-b[0])*(x1-x0),k[0])].concat(text).forEach("
	"function(t){var r=document.createElement('div');r.textContent=t;tip.appendChild(r)});tip.style.display='block';\n"
	"var w=tip.offsetWidth,left=e.clientX+14;if(left+w>innerWidth-6)left=e.clientX-w-14;tip.style.left=Math.max(4,left)+'px';"
	"tip.style.top=(e.clientY+14)+'px'});s.addEventListener('pointerleave',away)})})();\n",
};

void html_begin(struct buffer *out, const char *title)
{
	buffer_text(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
			 "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>");
	html_text(out, title);
	buffer_text(out, "</title>\n<style>\n");
	for (size_t i = 0; i < sizeof style / sizeof *style; i++)
		buffer_text(out, style[i]);
	buffer_text(out, "</style></head>\n<body><main>\n");
}

void html_end(struct buffer *out)
{
	buffer_text(out, "</main><div id=\"tip\" role=\"presentation\"></div>\n<script>\n");
	for (size_t i = 0; i < sizeof script / sizeof *script; i++)
		buffer_text(out, script[i]);
	buffer_text(out, "</script></body></html>\n");
}

void html_text(struct buffer *out, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	while (*p) {
		size_t size;
		bool control = text_is_control(p, strnlen((const char *)p, 4), &size);
		if (*p == '<')
			buffer_text(out, "&lt;");
		else if (*p == '>')
			buffer_text(out, "&gt;");
		else if (*p == '&')
			buffer_text(out, "&amp;");
		else if (*p == '"')
			buffer_text(out, "&quot;");
		else if (control && *p != '\n' && *p != '\t')
			buffer_text(out, "\xEF\xBF\xBD");
		else
			buffer_append(out, p, size);
		p += size;
	}
}
