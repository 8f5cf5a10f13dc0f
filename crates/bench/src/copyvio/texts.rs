//! Texts that were written for this bench, on one subject: a story, a paraphrase of it, and an independent one.

/// A text, its paraphrase, and a text on the same subject that is not derived from it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Triple {
    pub(super) language: &'static str,
    pub(super) text: &'static str,
    pub(super) paraphrase: &'static str,
    pub(super) other: &'static str,
}

pub(super) const TRIPLES: [Triple; 4] = [
    Triple {
        language: "English",
        text: "The old mill at Harrow Bend was built more than a hundred years ago by the people of nine villages, who shared the work \
            and the cost between them. Every winter carts loaded with grain stood in a long queue before its door from the early morning on. The \
            miller was a carpenter by trade and knew how to mend a wheel that the water had worn away. When the new road was cut through the \
            valley and electricity arrived, people turned to the large mill in the town. His youngest son could not bring himself to pull the \
            building down, so he made the barn beside it into a small museum that shows the tools, the account books and the oil lamp of his \
            grandfather. Today children from the town come by bus to see the wheel turn and to hear the old people tell of the harvests of their \
            youth.",
        paraphrase: "The ancient mill at Harrow Bend was put up more than a hundred years ago by the people of nine villages, who divided the \
            work and the cost among themselves. Each winter, carts heavy with grain waited in a long line before its door from early morning. The \
            miller, a carpenter by trade, knew how to repair a wheel that the water had worn down. Once the new road was cut through the valley \
            and electric power arrived, people went to the big mill in the town instead. His youngest son could not bring himself to tear the \
            building down, and turned the barn next to it into a little museum showing the tools, the account books and the oil lamp of his \
            grandfather. Nowadays children from the town come by coach to watch the wheel turn and listen to old people talk about the harvests \
            of their youth.",
        other: "A water wheel turns the force of a moving stream into rotation, and has ground corn, sawn timber and lifted water for several \
            thousand years. Engineers divide wheels into three kinds according to the height at which the water meets the blades. The overshot \
            wheel makes the best use of the water but asks for a considerable fall; the undershot wheel works on any river and wastes most of its \
            power. Steam made factories independent of streams, and by the end of the nineteenth century many buildings along the river stood \
            empty. Interest came back with the price of oil. In a number of valleys small generators were put into old millhouses, which kept the \
            roofs from falling in and supplied the neighbours with current. Biologists ask that a passage be left for fish on their way to the \
            spawning grounds, and that enough water stay in the bed of the river in dry summers.",
    },
    Triple {
        language: "Chinese",
        text: "村口的老水车已经转了两百多年。每到秋天，周围九个村子的农民都会把新收的稻谷运到这里，排着长队等候碾米。水车的主人姓陈，祖上三代都是木匠，\
            懂得怎样修补被河水泡坏的轮叶。冬天河面结冰，水车停下来，全家人便靠编竹篮过日子。后来县里修了公路，又拉来了电线，新的碾米厂开在镇上，来水车的人一年\
            比一年少。陈家最小的儿子舍不得拆掉它，便把旁边的仓库改成了一间小小的博物馆，里面摆着祖父用过的刨子、账本和一盏煤油灯。如今每逢周末，城里的孩子会坐\
            大巴来看水车转动，听老人讲当年抢收稻谷的故事。",
        paraphrase: "村口那架老水车已经转了两百来年。一到秋天，附近九个村子的农民都要把新收的稻谷送到这里，排着长队等着碾米。水车的主人姓陈，家里三代都是\
            木匠，知道怎样修补被河水泡烂的轮叶。冬天河面结了冰，水车停下来，一家人就靠编竹篮过日子。后来县里修了公路，也拉来了电线，新碾米厂开在镇上，来水车的人\
            一年比一年少了。陈家的小儿子舍不得拆掉它，就把旁边的仓库改成了一间小博物馆，里面摆着祖父用过的刨子、账本和一盏旧煤油灯。现在每到周末，城里的孩子会坐\
            大巴来看水车转动，听老人讲当年抢收稻谷的往事。",
        other: "水力机械的历史十分悠久。古代工匠很早就发现，流动的河水可以带动轮子，从而代替人力和畜力。按照水流进入轮子的位置，工程师把它们分成上射式、中射式\
            和下射式三类，其中上射式效率最高，但需要较大的落差。随着蒸汽机的普及，许多磨坊改用煤炭作为动力，河边的厂房也逐渐荒废。二十世纪末，人们重新重视可再生\
            能源，一些地方在旧址上安装了小型发电机组，既保护了建筑，又为附近居民提供电力。研究者认为，这类改造要注意鱼类洄游的问题，应当留出足够的生态流量。",
    },
    Triple {
        language: "Hindi",
        text: "नदी के किनारे खड़ी पुरानी चक्की को नौ गाँवों ने मिलकर सौ साल पहले बनाया था। हर सर्दी में किसान अपना अनाज बैलगाड़ियों पर लादकर यहाँ लाते थे और \
            सुबह से शाम तक अपनी बारी की राह देखते थे। चक्की का मालिक एक बढ़ई था जो पानी से सड़े हुए पहिये की मरम्मत करना जानता था। जब नई सड़क बनी और बिजली आई \
            तो लोग शहर की बड़ी मिल में जाने लगे। उसके सबसे छोटे बेटे ने चक्की को गिराने से मना कर दिया और पास के गोदाम को एक छोटे संग्रहालय में बदल दिया। वहाँ दादा के \
            औज़ार, हिसाब की बही और मिट्टी के तेल का दीपक रखा है। अब हर रविवार को शहर के बच्चे बस से आते हैं और बूढ़ों से पुराने दिनों की कहानियाँ सुनते हैं।",
        paraphrase: "नदी के तट पर खड़ी पुरानी चक्की को नौ गाँवों ने मिलकर लगभग सौ साल पहले बनवाया था। हर जाड़े में किसान अपना अनाज बैलगाड़ियों पर लादकर यहाँ \
            लाते और सुबह से शाम तक अपनी बारी की प्रतीक्षा करते थे। चक्की का मालिक एक बढ़ई था जो पानी से सड़े पहिये की मरम्मत करना जानता था। जब नई सड़क बनी और बिजली \
            पहुँची तो लोग शहर की बड़ी मिल में जाने लगे। उसके छोटे बेटे ने चक्की को तोड़ने से मना कर दिया और पास के गोदाम को एक छोटे संग्रहालय में बदल दिया। वहाँ दादा के \
            औज़ार, हिसाब की बही और तेल का दीपक रखा हुआ है। अब हर रविवार शहर के बच्चे बस से आते हैं और बुज़ुर्गों से पुराने दिनों की कहानियाँ सुनते हैं।",
        other: "पनचक्की बहते पानी की शक्ति से घूमने वाला एक प्राचीन यंत्र है। इससे आटा पीसा जाता था, लकड़ी चीरी जाती थी और खेतों में पानी पहुँचाया जाता था। \
            इंजीनियर पहियों को तीन प्रकारों में बाँटते हैं, इस आधार पर कि जल किस ऊँचाई से गिरता है। भाप के इंजन के आने के बाद अधिकतर कारखानों ने नालों पर निर्भर रहना छोड़ \
            दिया। पिछली सदी के अंत में कई सरकारों ने नवीकरणीय ऊर्जा पर ध्यान दिया और खाली इमारतों में छोटे जनरेटर लगाए। विशेषज्ञ कहते हैं कि मछलियों के आने जाने के लिए \
            रास्ता छोड़ना ज़रूरी है।",
    },
    Triple {
        language: "Thai",
        text: "โรงสีเก่าริมแม่น้ำสร้างขึ้นเมื่อกว่าร้อยปีก่อนโดยชาวบ้านเก้าหมู่บ้านที่ช่วยกันลงแรง ทุกฤดูหนาวเกวียนบรรทุกข้าวเปลือกจะมาต่อแถวยาวอยู่หน้าโรงสีตั้งแต่เช้ามืด \
            เจ้าของโรงสีเป็นช่างไม้ที่รู้จักซ่อมกงล้อซึ่งถูกน้ำกัดเซาะจนผุพัง เมื่อถนนสายใหม่ตัดผ่านและไฟฟ้าเข้ามาถึง ผู้คนก็หันไปใช้โรงสีใหญ่ในตัวเมือง \
            ลูกชายคนเล็กของเขาไม่อยากรื้อมันทิ้ง จึงเปลี่ยนโกดังข้างๆ ให้เป็นพิพิธภัณฑ์เล็กๆ ที่จัดแสดงเครื่องมือ สมุดบัญชี และตะเกียงน้ำมันของคุณปู่ \
            ทุกวันนี้เด็กๆ จากในเมืองนั่งรถมาดูกงล้อหมุนและฟังคนเฒ่าคนแก่เล่าเรื่องการเก็บเกี่ยวในสมัยก่อน",
        paraphrase: "โรงสีเก่าข้างแม่น้ำสร้างขึ้นเมื่อราวร้อยปีก่อนโดยชาวบ้านเก้าหมู่บ้านที่ร่วมกันลงแรง ทุกหน้าหนาวเกวียนบรรทุกข้าวเปลือกจะมาต่อแถวยาวหน้าโรงสีตั้งแต่เช้าตรู่ \
            เจ้าของโรงสีเป็นช่างไม้ที่รู้วิธีซ่อมกงล้อซึ่งถูกน้ำกัดเซาะจนพัง พอถนนสายใหม่ตัดผ่านและไฟฟ้ามาถึง ผู้คนก็หันไปใช้โรงสีใหญ่ในเมือง \
            ลูกชายคนเล็กของเขาไม่อยากรื้อทิ้ง จึงดัดแปลงโกดังข้างๆ ให้เป็นพิพิธภัณฑ์เล็กๆ ซึ่งจัดแสดงเครื่องมือ สมุดบัญชี และตะเกียงน้ำมันของคุณปู่ \
            ปัจจุบันเด็กๆ จากในเมืองนั่งรถมาชมกงล้อหมุนและฟังคนเฒ่าคนแก่เล่าเรื่องการเก็บเกี่ยวในอดีต",
        other: "กังหันน้ำเป็นเครื่องจักรโบราณที่เปลี่ยนแรงของกระแสน้ำให้เป็นการหมุน มนุษย์ใช้มันวิดน้ำเข้านา บดแป้ง และเลื่อยไม้มาหลายพันปี \
            วิศวกรแบ่งกังหันออกเป็นสามชนิดตามตำแหน่งที่น้ำไหลเข้าสู่ใบพัด ชนิดที่รับน้ำจากด้านบนมีประสิทธิภาพสูงสุดแต่ต้องการระดับน้ำที่ต่างกันมาก \
            เมื่อเครื่องจักรไอน้ำแพร่หลาย โรงงานจำนวนมากจึงเลิกพึ่งพาลำธาร ปลายศตวรรษที่ยี่สิบรัฐบาลหลายประเทศเริ่มสนใจพลังงานหมุนเวียน \
            และติดตั้งเครื่องกำเนิดไฟฟ้าขนาดเล็กในอาคารร้าง นักวิชาการเตือนว่าควรเว้นทางให้ปลาว่ายขึ้นไปวางไข่ได้",
    },
];
